package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// mostBlockers bounds how far why follows holders that wait themselves.
const mostBlockers = 8

// maySee ends a sentence on what only operators see.
const maySee = "this token may not see: it needs the scope tenant-admin or admin."

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why NAME",
		Short: "Explain why a lock is not free",
		Long: `Explain in sentences the holders of a lock, its queue, and the lock that the
holder itself waits for; of a free lock, its last holder. The last two need a
token with the scope tenant-admin or admin.`,
		Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			lock, err := to.Look(ctx, args[0])
			if err != nil {
				return err
			}
			names := namesOf(lock.Holders, func(h api.Holder) string { return h.Holder })
			said := why(lock)
			if claims, err := a.claims(); err == nil {
				said = append(said, blockedBy(ctx, to, claims.Tenant, lock)...)
				said = append(said, hadLast(ctx, to, claims.Tenant, lock)...)
			}
			return a.print(explained{lock, said}, names, func(w *tabwriter.Writer) {
				for _, sentence := range said {
					fmt.Fprintln(w, plain(sentence))
				}
			})
		}),
	}
}

// explained is a lock with the sentences of why.
type explained struct {
	*api.Lock
	Why []string `json:"why"`
}

// why says what a look at the lock shows.
func why(lock *api.Lock) (said []string) {
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	switch {
	case len(lock.Holders) > 0:
		for _, h := range lock.Holders {
			said = append(said, whyHeld(lock, h))
		}
	case lock.Waiting > 0:
		say("%s is not held. The first in its queue waits for another lock of its set.", lock.Name)
	default:
		say("%s is free: no entry holds it or waits for it.", lock.Name)
	}
	if p := lock.Figures.HoldSeconds; p != nil && len(lock.Holders) > 0 {
		say("Recent holds: p50 %s, p99 %s.",
			rounded(p.P50.Duration()), rounded(p.P99.Duration()))
	}
	if len(lock.Waiters) > 0 {
		q, wait := lock.Waiters[0], "entries wait"
		if lock.Waiting == 1 {
			wait = "entry waits"
		}
		say("%d %s. The first is %s, which has waited for %s.",
			lock.Waiting, wait, q.Holder, rounded(q.WaitedSeconds.Duration()))
	}
	if r := lock.ReleaseRequested; r != nil {
		say("%s asked the holder to finish, %s ago.", r.By, ago(r.Since))
	}
	if c := lock.Closed; c != nil {
		say("It is closed for %s (%s): until then no new entry joins its queue.",
			in(&c.Until), c.Reason)
	}
	return said
}

func whyHeld(lock *api.Lock, h api.Holder) string {
	text := fmt.Sprintf("%s is held by %s for %s (%s, fence %d).",
		lock.Name, h.Holder, ago(h.Since), mode(h.Mode, h.Limit, h.Permits), h.Fence)
	if h.ExpiresAt != nil {
		text += fmt.Sprintf(" Its lease ends in %s unless the holder renews it.", in(h.ExpiresAt))
	}
	if job := h.Metadata["command"]; job != "" {
		text += fmt.Sprintf(" It runs %s.", job)
	}
	return text
}

// blockedBy follows the first holder to the lock that it waits for, the holder of that, and so on.
// Without the scope for it, it says so.
func blockedBy(
	ctx context.Context, to *client.Client, tenant string, lock *api.Lock,
) (said []string) {
	seen := map[string]bool{}
	for len(lock.Holders) > 0 && len(said) < mostBlockers {
		holder := lock.Holders[0].Holder
		name, err := waitsFor(ctx, to, tenant, holder)
		if client.CodeOf(err) == api.Forbidden {
			return append(said, "Whether the holder itself waits for a lock, "+maySee)
		}
		if name == "" || seen[holder] {
			break
		}
		seen[holder] = true
		next, err := to.Look(ctx, name)
		if err != nil || len(next.Holders) == 0 {
			break
		}
		said = append(said, fmt.Sprintf("%s waits for %s itself, which is held by %s.",
			holder, name, holders(next.Holders)))
		lock = next
	}
	return said
}

// waitsFor returns the lock that a holder waits for, or "".
func waitsFor(ctx context.Context, to *client.Client, tenant, holder string) (string, error) {
	var has api.AdminHoldings
	query := url.Values{"tenant": {tenant}, "holder": {holder}}
	err := to.Call(ctx, http.MethodGet, "/admin/holders?"+query.Encode(), nil, nil, &has)
	if err != nil {
		return "", err
	}
	for _, entry := range has.Entries {
		for _, lock := range entry.Locks {
			if lock.State == "waiting" {
				return lock.Name, nil
			}
		}
	}
	return "", nil
}

// hadLast returns a sentence on the last holder of a free lock, if the answering replica saw one.
func hadLast(ctx context.Context, to *client.Client, tenant string, lock *api.Lock) []string {
	if len(lock.Holders)+lock.Waiting > 0 {
		return nil
	}
	var past api.AdminHistory
	path := "/admin/locks/" + url.PathEscape(tenant) + "/" + url.PathEscape(lock.Name) + "/history"
	err := to.Call(ctx, http.MethodGet, path, nil, nil, &past)
	switch {
	case client.CodeOf(err) == api.Forbidden:
		return []string{"Its last holder, " + maySee}
	case err != nil || len(past.Holders) == 0:
		return nil
	}
	h := past.Holders[0]
	return []string{fmt.Sprintf("%s had it last for %s, until %s ago (%s, fence %d).",
		h.Holder, rounded(h.HeldSeconds.Duration()), ago(h.Until), h.Ended, h.Fence)}
}
