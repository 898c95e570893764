package main

import (
	"fmt"
	"strings"
)

// String returns the outcome in words.
func (o outcome) String() string {
	switch {
	case o.err != nil:
		return o.err.Error()
	case o.caught == "":
		return "survived " + o.bug.In + " " + o.bug.Run
	}
	return fmt.Sprintf("caught by %s in %.1f s", o.caught, o.took.Seconds())
}

// report returns the table in Markdown.
func report(outcomes []outcome) string {
	var b strings.Builder
	b.WriteString("| seeded bug | breaks | in | caught by | s |\n| --- | --- | --- | --- | ---: |\n")
	for _, o := range outcomes {
		by := "`" + o.caught + "`, `" + o.bug.In + "`"
		if o.caught == "" {
			by = "**" + o.String() + "**"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %.0f |\n",
			o.bug.Name, o.bug.Breaks, o.bug.File, by, o.took.Seconds())
	}
	return b.String()
}

// stories returns what the explorer tells of the bugs that it found.
func stories(outcomes []outcome) string {
	var b strings.Builder
	for _, o := range outcomes {
		_, told, ok := strings.Cut(o.output, "the story, ")
		if told, _, _ = strings.Cut(told, "play it again"); ok {
			fmt.Fprintf(&b, "\n%s: %s\n%s", o.bug.Name, o.bug.Breaks, told)
		}
	}
	return b.String()
}

// verdict returns an error that names what was not caught, and what the tests said.
func verdict(outcomes []outcome) error {
	var bad strings.Builder
	n := 0
	for _, o := range outcomes {
		if o.caught == "" {
			n++
			fmt.Fprintf(&bad, "\n%s: %s\n%s", o.bug.Name, o, tail(o.output))
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d seeded bugs were not caught%s", n, len(outcomes), bad.String())
	}
	return nil
}
