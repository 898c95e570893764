package row

import (
	"fmt"
	"strings"
)

var heading = [...]string{
	"row", "what", "Fencepost", "peer", "ratio", "bar", "met",
	"p50", "p99", "peer p50", "peer p99",
}

func (o Outcome) cells() []string {
	cells := []string{
		o.ID, o.What, o.Ours, o.Theirs, o.Ratio, o.Bar, o.Met.String(),
		o.OurP50, o.OurP99, o.TheirP50, o.TheirP99,
	}
	for i := range cells {
		if cells[i] == "" {
			cells[i] = "–"
		}
	}
	return cells
}

// Table returns the outcomes as Markdown.
func Table(m Machine, outcomes []Outcome) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s.\n\n", m)
	fmt.Fprintf(
		&s,
		"| %s |\n|%s\n",
		strings.Join(heading[:], " | "),
		strings.Repeat(" --- |", len(heading)),
	)
	for _, o := range outcomes {
		fmt.Fprintf(&s, "| %s |\n", strings.Join(o.cells(), " | "))
	}
	for _, o := range outcomes {
		for _, note := range o.Notes {
			fmt.Fprintf(&s, "\n- %s: %s", o.ID, note)
		}
	}
	return strings.TrimRight(s.String(), "\n") + "\n"
}
