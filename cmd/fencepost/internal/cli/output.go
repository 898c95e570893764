package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// print writes a value as JSON, names one in a line, or what table writes.
func (a *app) print(value any, names []string, table func(*tabwriter.Writer)) error {
	switch a.output {
	case "json":
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(value)
	case "name":
		for _, name := range names {
			fmt.Fprintln(os.Stdout, plain(name))
		}
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// printLine writes a value as JSON, its name, or a line of text.
func (a *app) printLine(value any, name, format string, args ...any) error {
	return a.print(value, []string{name}, func(w *tabwriter.Writer) {
		row(w, fmt.Sprintf(format, args...))
	})
}

// namesOf returns the names of all elements.
func namesOf[T any](all []T, name func(T) string) []string {
	names := make([]string, 0, len(all))
	for _, element := range all {
		names = append(names, name(element))
	}
	return names
}

// row writes the cells of a row.
func row(w *tabwriter.Writer, cells ...any) {
	texts := make([]string, 0, len(cells))
	for _, cell := range cells {
		texts = append(texts, plain(fmt.Sprint(cell)))
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

// plain replaces characters that control a terminal or change the direction of its text, because
// holders choose their names.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return '?'
		}
		return r
	}, text)
}

// ago is how long ago an instant was.
func ago(i api.Instant) string {
	at, err := i.Time()
	if err != nil {
		return "?"
	}
	return rounded(time.Since(at))
}

// in is how long it takes until an instant; empty without one.
func in(i *api.Instant) string {
	if i == nil {
		return ""
	}
	at, err := i.Time()
	if err != nil {
		return "?"
	}
	return rounded(time.Until(at))
}

// rounded writes a duration as people say it: 850ms, 12s, 3m4s, 5h2m, 3d4h.
func rounded(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// sentence says what went wrong without the prefix of the client, and names the holder.
func sentence(err error) string {
	var problem *client.Error
	if !errors.As(err, &problem) {
		text := strings.TrimPrefix(err.Error(), "fencepost: ")
		return plain(strings.Join(strings.Fields(text), " ")) // in one line
	}
	before, _, _ := strings.Cut(err.Error(), problem.Error())
	text := before + refusal(problem)
	if len(problem.Holders) > 0 {
		text += "; held by " + holders(problem.Holders)
	}
	return plain(strings.TrimPrefix(text, "fencepost: "))
}

// refusal says in the words of this program what the client met.
func refusal(problem *client.Error) string {
	text, title := strings.TrimPrefix(problem.Error(), "fencepost: "), problem.Title
	repeats := strings.HasPrefix(strings.ToLower(problem.Detail), strings.ToLower(title))
	switch {
	// The details of these say what a client of the HTTP API does next.
	case problem.Code == api.Held, problem.Code == api.TimedOut:
		return title
	case problem.Code == api.Closed:
		return fmt.Sprintf("%s for %s: %s", title, in(problem.Until), problem.Reason)
	case problem.Code == client.NoAnswer:
		return strings.Replace(text, " ("+string(client.NoAnswer)+")", "", 1)
	case repeats, problem.Code == api.InvalidRequest, problem.Code == api.InvalidName:
		return strings.TrimPrefix(text, title+": ")
	}
	return text
}

// holders names the first holder of a lock, and counts the others.
func holders(all []api.Holder) string {
	first := all[0]
	text := plain(fmt.Sprintf("%s for %s (fence %d)", first.Holder, ago(first.Since), first.Fence))
	if len(all) > 1 {
		text += fmt.Sprintf(" and %d more", len(all)-1)
	}
	return text
}
