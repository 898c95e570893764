package row

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
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

// Print writes the table for a terminal.
func Print(w io.Writer, m Machine, outcomes []Outcome) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(heading[:], "\t"))
	for _, o := range outcomes {
		fmt.Fprintln(tw, strings.Join(o.cells(), "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, o := range outcomes {
		for _, note := range o.Notes {
			fmt.Fprintf(w, "%s: %s\n", o.ID, note)
		}
	}
	_, err := fmt.Fprintf(w, "%s\n", m)
	return err
}

// Markdown returns the table for a document.
func Markdown(m Machine, outcomes []Outcome) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s.\n\n", m)
	fmt.Fprintf(&s, "| %s |\n|%s\n", strings.Join(heading[:], " | "), strings.Repeat(" --- |", len(heading)))
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

// The lines between which [WriteMarkdown] writes in a document that has them.
const (
	BeginMark = "<!-- begin: go run ./test/bench -markdown -->"
	EndMark   = "<!-- end -->"
)

// WriteMarkdown writes text into the file at path: between the marks if the
// file has them, else as the whole file.
func WriteMarkdown(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, rest, marked := strings.Cut(string(old), BeginMark)
	_, after, ended := strings.Cut(rest, EndMark)
	if marked && ended {
		text = before + BeginMark + "\n" + text + EndMark + after
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
