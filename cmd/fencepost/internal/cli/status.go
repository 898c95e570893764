package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status NAME",
		Short: "Show the holders and waiters of a lock",
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
	fmt.Fprintf(w, "%s is %s\n", plain(lock.Name), stateOf(lock))
	if lock.Closed != nil {
		fmt.Fprintf(w, "closed for %s: %s\n", in(&lock.Closed.Until), plain(lock.Closed.Reason))
	}
	if len(lock.Holders)+len(lock.Waiters) == 0 {
		return
	}
	fmt.Fprintln(w)
	row(w, "STATE", "HOLDER", "FOR", "MODE", "FENCE", "LEASE ENDS IN")
	for _, h := range lock.Holders {
		row(w, "held", h.Holder, ago(h.Since), mode(h.Mode, h.Limit, h.Permits), h.Fence,
			in(h.ExpiresAt))
	}
	for _, q := range lock.Waiters {
		row(w, fmt.Sprintf("waiting %d", q.Position), q.Holder, rounded(q.WaitedSeconds.Duration()),
			mode(q.Mode, q.Limit, q.Permits), "", "")
	}
	if more := lock.Waiting - len(lock.Waiters); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

func stateOf(lock *api.Lock) string {
	if len(lock.Holders) == 0 && lock.Waiting == 0 {
		return "free"
	}
	state := "held"
	if lock.PermitsHeld > 0 {
		state += fmt.Sprintf(", %d of its permits", lock.PermitsHeld)
	}
	if lock.Waiting > 0 {
		state += fmt.Sprintf(", %d waiting", lock.Waiting)
	}
	return state
}

func mode(mode string, limit, permits int) string {
	if limit > 0 {
		return fmt.Sprintf("%s: %d of %d", mode, max(permits, 1), limit)
	}
	return mode
}

func (a *app) listCommand() *cobra.Command {
	var state string
	command := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the locks in use",
		Args:  cobra.MaximumNArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			all := []api.LockSummary{}
			for lock, err := range to.List(ctx, first(args), state) {
				if err != nil {
					return err
				}
				all = append(all, lock)
			}
			names := namesOf(all, func(lock api.LockSummary) string { return lock.Name })
			return a.print(all, names, func(w *tabwriter.Writer) { list(w, all) })
		}),
	}
	command.Flags().StringVar(&state, "state", "", "only locks in this `state`: held or contended")
	return command
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func list(w *tabwriter.Writer, all []api.LockSummary) {
	row(w, "LOCK", "STATE", "HOLDER", "FOR", "FENCE", "WAITING")
	for _, lock := range all {
		holder, since := "", ""
		if len(lock.Holders) > 0 {
			holder, since = lock.Holders[0].Holder, ago(lock.Holders[0].Since)
		}
		if len(lock.Holders) > 1 {
			holder += fmt.Sprintf(" and %d more", len(lock.Holders)-1)
		}
		row(w, lock.Name, lock.State, holder, since, lock.Fence, lock.Waiting)
	}
}

func (a *app) queueCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "queue NAME",
		Short: "Show the waiters of a lock",
		Args:  cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			lock, err := to.Look(ctx, args[0])
			if err != nil {
				return err
			}
			names := namesOf(lock.Waiters, func(q api.Waiter) string { return q.Holder })
			return a.print(lock.Waiters, names, func(w *tabwriter.Writer) {
				row(w, "POSITION", "HOLDER", "WAITED", "MODE")
				for _, q := range lock.Waiters {
					waited := rounded(q.WaitedSeconds.Duration())
					row(w, q.Position, q.Holder, waited, mode(q.Mode, q.Limit, q.Permits))
				}
			})
		}),
	}
}

// waitEvery is between two looks of wait.
const waitEvery = 500 * time.Millisecond

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a lock is free, without acquiring it",
		Long: `Wait until a lock is free. Another holder may have it a moment later: to do
something while it is free, use fencepost run.`,
		Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			for begun := time.Now(); ; {
				lock, err := to.Look(ctx, args[0])
				switch {
				case err != nil:
					return err
				case len(lock.Holders)+lock.Waiting == 0:
					return nil
				case timeout > 0 && time.Since(begun) >= timeout:
					return &exit{codeNotAcquired, fmt.Errorf("%s is still in use", args[0])}
				}
				time.Sleep(waitEvery) //nolint:forbidigo // of a poll
			}
		}),
	}
	spanVar(command.Flags(), &timeout, "timeout", 0, "how long to wait; 0 sets no limit")
	return command
}
