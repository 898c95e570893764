package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status NAME",
		Short: "Show who holds a lock, and who waits",
		Args:  cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			lock, err := to.Look(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(lock, []string{lock.Name}, func(w *tabwriter.Writer) { status(w, lock) })
		}),
	}
}

// status writes a lock: what it is, then its holders and waiters.
func status(w *tabwriter.Writer, lock *api.Lock) {
	fmt.Fprintf(w, "%s is %s\n", lock.Name, stateOf(lock))
	if lock.Closed != nil {
		fmt.Fprintf(w, "closed for %s: %s\n", in(&lock.Closed.Until), plain(lock.Closed.Reason))
	}
	if len(lock.Holders)+len(lock.Waiters) == 0 {
		return
	}
	fmt.Fprintln(w)
	row(w, "STATE", "HOLDER", "FOR", "MODE", "FENCE", "LEASE ENDS IN")
	for _, h := range lock.Holders {
		row(w, "held", h.Holder, ago(h.Since), mode(h.Mode, h.Limit), h.Fence, in(h.ExpiresAt))
	}
	for _, q := range lock.Waiters {
		row(w, fmt.Sprint(q.Position), q.Holder, rounded(q.WaitedSeconds.Duration()),
			mode(q.Mode, q.Limit), "", "")
	}
	if more := lock.Waiting - len(lock.Waiters); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

func stateOf(lock *api.Lock) string {
	switch {
	case len(lock.Holders) == 0 && lock.Waiting == 0:
		return "free"
	case lock.Waiting > 0:
		return fmt.Sprintf("held, and %d wait", lock.Waiting)
	}
	return "held"
}

func mode(mode string, limit int) string {
	if limit > 0 {
		return fmt.Sprintf("%s of %d", mode, limit)
	}
	return mode
}
