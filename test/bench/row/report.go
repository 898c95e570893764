package row

import (
	"fmt"
	"slices"
	"strings"
)

var heading = [...]string{
	"row", "what", "Fencepost", "peer", "ratio", "spread", "bar", "met", "p50, p99", "peer's p50, p99",
}

func (o Outcome) cells() []string {
	cells := []string{
		o.ID, o.What, o.Ours, o.Theirs, o.Ratio, o.Spread, o.Bar, o.Met.String(),
		o.OurLatency, o.TheirLatency,
	}
	for i := range cells {
		if cells[i] == "" {
			cells[i] = "–"
		}
	}
	return cells
}

// Table returns what was run and its outcomes as Markdown.
func Table(m Machine, c Config, outcomes []Outcome) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s; rounds of each side: %d of %v, after %v.\n\n", m, c.Rounds, c.Duration, c.Warmup)
	fmt.Fprintf(&s, "| %s |\n", strings.Join(heading[:], " | "))
	fmt.Fprintf(&s, "|%s\n", strings.Repeat(" --- |", len(heading)))
	for _, o := range outcomes {
		fmt.Fprintf(&s, "| %s |\n", strings.Join(o.cells(), " | "))
	}
	for _, note := range notes(outcomes) {
		fmt.Fprintf(&s, "\n- %s", note)
	}
	return strings.TrimRight(s.String(), "\n") + "\n"
}

// notes lists each note once.
func notes(outcomes []Outcome) []string {
	var all []string
	for _, o := range outcomes {
		for _, note := range o.Notes {
			if line := o.ID + ": " + note; note != "" && !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}
