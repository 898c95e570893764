package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

func (a *app) watchCommand() *cobra.Command {
	filter := client.EventFilter{}
	command := &cobra.Command{
		Use:   "watch [PATTERN]",
		Short: "Follow events",
		Long: `Follow events: a live table in a terminal, a line for each event in a pipe, and
a JSON object in each line with --output json.

A pattern is a name, in which one star stands for any text.`,
		Example: `  fencepost watch 'orders:*'
  fencepost watch --types lock.expired,lock.revoked | while read at type lock rest; do …; done`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			if len(args) == 1 {
				filter.Locks = args
			}
			if a.output == "table" && isTerminal(os.Stdout) {
				return watchTable(ctx, to, filter)
			}
			return a.watchLines(ctx, to, filter)
		}),
	}
	command.Flags().StringSliceVar(&filter.Types, "types", nil, "only events of these `types`")
	command.Flags().StringVar(&filter.After, "after", "", "resume after the event with this `ID`")
	return command
}

func (a *app) watchLines(ctx context.Context, to *client.Client, filter client.EventFilter) error {
	lines := json.NewEncoder(os.Stdout)
	for event, err := range to.Events(ctx, filter) {
		if err != nil {
			return err
		}
		switch a.output {
		case "json":
			err = lines.Encode(event)
		case "name":
			_, err = fmt.Fprintln(os.Stdout, plain(lockOf(event)))
		default:
			_, err = fmt.Fprintln(os.Stdout, line(event))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func lockOf(event *api.Event) string {
	return cmp.Or(event.Data.Lock, strings.Join(event.Data.Locks, ","))
}

// line returns an event as one line: time, type, lock, holder.
func line(event *api.Event) string {
	text := string(event.Timestamp) + " " + event.Type + " " + lockOf(event)
	if e := event.Data.Entry; e != nil {
		text += " holder=" + e.Holder
		if e.Fence > 0 {
			text += fmt.Sprintf(" fence=%d", e.Fence)
		}
	}
	if event.Data.Reason != "" {
		text += " reason=" + event.Data.Reason
	}
	if r := event.Data.Revoked; r != nil {
		text += fmt.Sprintf(" by=%s why=%q", r.By, r.Reason)
	}
	return plain(text)
}

const (
	tableEvery  = time.Second
	tableLocks  = 14
	tableEvents = 6
	home        = "\x1b[H\x1b[J"
)

// watchTable shows the locks in use and the newest events until an error.
func watchTable(ctx context.Context, to *client.Client, filter client.EventFilter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, failed := make(chan *api.Event), make(chan error, 1)
	go func() {
		for event, err := range to.Events(ctx, filter) {
			if err != nil {
				failed <- err
				return
			}
			events <- event
		}
	}()
	var newest []string
	for {
		if err := draw(ctx, to, filter, newest); err != nil {
			return err
		}
		for due := time.After(tableEvery); due != nil; {
			select {
			case event := <-events:
				newest = append(newest, line(event))
				newest = newest[max(0, len(newest)-tableEvents):]
			case err := <-failed:
				return err
			case <-due:
				due = nil
			}
		}
	}
}

func draw(
	ctx context.Context, to *client.Client, filter client.EventFilter, newest []string,
) error {
	pattern := first(filter.Locks)
	prefix, _, _ := strings.Cut(pattern, "*")
	var all []api.LockSummary
	more := 0
	for lock, err := range to.List(ctx, prefix, "") {
		switch {
		case err != nil:
			return err
		case !matches(pattern, lock.Name):
		case len(all) < tableLocks:
			all = append(all, lock)
		default:
			more++
		}
	}
	text := &strings.Builder{}
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	list(w, all)
	_ = w.Flush() // into memory
	if more > 0 {
		fmt.Fprintf(text, "and %d more\n", more)
	}
	fmt.Fprint(text, "\n", strings.Join(newest, "\n"), "\n")
	_, err := fmt.Fprint(os.Stdout, home+text.String())
	return err
}

// matches reports whether a name has the pattern, in which one star stands for any text.
func matches(pattern, name string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == "" || name == pattern
	}
	return len(name) >= len(before)+len(after) &&
		strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}
