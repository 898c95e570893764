package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// Bounds of a reason, in characters. The server checks the rest.
const (
	leastReason = 10
	mostReason  = 500
)

// deed has the flags of an operator's change.
type deed struct {
	tenant, reason string
}

func (d *deed) bind(flags *pflag.FlagSet) {
	flags.StringVar(&d.tenant, "tenant", "", "`name` of the tenant of the locks; that of the token by default")
	flags.StringVar(&d.reason, "reason", "", "`text` of 10 characters or more; the tenant sees it")
}

// of checks the reason before the operator confirms, and fills in the tenant of the token.
func (d *deed) of(a *app) error {
	if n := utf8.RuneCountInString(d.reason); n < leastReason || n > mostReason {
		return usage("--reason must have %d to %d characters", leastReason, mostReason)
	}
	if d.tenant != "" {
		return nil
	}
	claims, err := a.claims()
	if err != nil || claims.Tenant == "" {
		return usage("the token names no tenant: set --tenant")
	}
	d.tenant = claims.Tenant
	return nil
}

func (a *app) revokeCommand() *cobra.Command {
	d := &deed{}
	var id string
	var yes bool
	command := &cobra.Command{
		Use:   "revoke NAME --reason TEXT",
		Short: "Take a lock away from its holder",
		Long: `Take a lock away from its holder, or remove an entry from its queue. The server
grants the lock to the next waiter at once. If the holder is fencepost run, it
kills its command. Other holders may work on: only the fence stops their writes.

It needs a token with the scope tenant-admin or admin.`,
		Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			if err := d.of(a); err != nil {
				return err
			}
			return a.revoke(ctx, to, d, args[0], id, yes)
		}),
	}
	d.bind(command.Flags())
	command.Flags().StringVar(&id, "entry", "", "`ID` of the entry, if several hold the lock")
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return command
}

func (a *app) revoke(
	ctx context.Context, to *client.Client, d *deed, name, id string, yes bool,
) error {
	var lock api.AdminLockView
	path := "/admin/locks/" + url.PathEscape(d.tenant) + "/" + url.PathEscape(name)
	if err := to.Call(ctx, http.MethodGet, path, nil, nil, &lock); err != nil {
		return err
	}
	entry, err := choose(&lock, id)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("revoke %s of %s (fence %d)?", name, entry.Holder, entry.Fence)
	if !yes && !confirmed(question) {
		return errors.New("not confirmed: use --yes")
	}
	path += "/entries/" + url.PathEscape(entry.ID) + "/revoke"
	if entry.Set > 0 {
		path = "/admin/locksets/" + url.PathEscape(d.tenant) + "/" + url.PathEscape(entry.ID) + "/revoke"
	}
	var revoked api.Revoked
	body := api.RevokeBody{Fence: api.Fence(entry.Fence), Reason: d.reason}
	if err := to.Call(ctx, http.MethodPost, path, nil, body, &revoked); err != nil {
		return err
	}
	return a.printLine(revoked, revoked.ID, "revoked %s of %s (fence %d)",
		name, revoked.Holder, revoked.Fence)
}

// choose returns the entry with the id, or the only holder.
func choose(lock *api.AdminLockView, id string) (*api.AdminHolder, error) {
	entries := lock.Holders
	if id != "" {
		for _, q := range lock.Waiters {
			waiter := api.AdminHolder{ID: q.ID, Holder: q.Holder, Fence: q.Number, Set: q.Set}
			entries = append(entries, waiter)
		}
		entries = slices.DeleteFunc(entries, func(e api.AdminHolder) bool { return e.ID != id })
	}
	switch {
	case len(entries) == 1:
		return &entries[0], nil
	case id != "":
		return nil, fmt.Errorf("%s has no entry %s", lock.Name, id)
	case len(entries) == 0:
		return nil, fmt.Errorf("%s is not held", lock.Name)
	}
	return nil, usage("%s has %d holders: name one by --entry", lock.Name, len(entries))
}

// confirmed asks a person. A program cannot answer.
func confirmed(question string) bool {
	if !isTerminal(os.Stdin) || !isTerminal(os.Stderr) {
		return false
	}
	fmt.Fprintf(os.Stderr, "%s [y/N] ", plain(question))
	var answer string
	_, _ = fmt.Scanln(&answer) // nothing is no
	return answer == "y" || answer == "yes"
}

func (a *app) closeCommand() *cobra.Command {
	d := &deed{}
	var lasting time.Duration
	var description string
	command := &cobra.Command{
		Use:   "close PATTERN --reason TEXT",
		Short: "Close locks for a time: no new entry joins them",
		Long: `Close locks for a time. Holders keep their locks, and the server still grants
them to waiters in order. It refuses new requests with the reason. A pattern is
a name, in which one star stands for any text.

It needs a token with the scope tenant-admin or admin.`,
		Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			if err := d.of(a); err != nil {
				return err
			}
			body := api.CloseBody{
				Tenant: d.tenant, Locks: args[0], Until: api.InstantOf(time.Now().Add(lasting)),
				Reason: d.reason, Description: description,
			}
			var made api.Closure
			if err := to.Call(ctx, http.MethodPost, "/admin/closures", nil, body, &made); err != nil {
				return err
			}
			return a.printLine(made, made.ID, "%s is closed until %s (fencepost open %s)",
				made.Locks, made.Until, made.ID)
		}),
	}
	d.bind(command.Flags())
	spanVar(command.Flags(), &lasting, "for", time.Hour, "how long, up to 144h")
	command.Flags().StringVar(&description, "description", "", "`text` for other operators")
	return command
}

func (a *app) openCommand() *cobra.Command {
	d := &deed{}
	command := &cobra.Command{
		Use:   "open [ID|PATTERN]",
		Short: "List closures, or end one",
		Long: `List closures, or end those with an ID or a pattern.

It needs a token with the scope tenant-admin or admin.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			query := url.Values{}
			if d.tenant != "" {
				query.Set("tenant", d.tenant)
			}
			all := []api.Closure{}
			err := pages(ctx, to, "/admin/closures", query, func(page *api.ClosurePage) string {
				all = append(all, page.Closures...)
				return page.NextCursor
			})
			switch {
			case err != nil:
				return err
			case len(args) == 0:
				return a.listClosures(all)
			}
			return end(ctx, to, all, args[0], d.reason)
		}),
	}
	d.bind(command.Flags())
	return command
}

func (a *app) listClosures(all []api.Closure) error {
	ids := namesOf(all, func(c api.Closure) string { return c.ID })
	return a.print(all, ids, func(w *tabwriter.Writer) {
		row(w, "ID", "LOCKS", "ENDS IN", "BY", "REASON")
		for _, c := range all {
			row(w, c.ID, c.Locks, in(&c.Until), c.By, c.Reason)
		}
	})
}

// end ends the closures with an id or a pattern.
func end(
	ctx context.Context, to *client.Client, all []api.Closure, which, reason string,
) error {
	found := false
	query := url.Values{"reason": {cmp.Or(reason, "opened by fencepost open")}}
	for _, c := range all {
		if c.ID != which && c.Locks != which {
			continue
		}
		found = true
		path := "/admin/closures/" + url.PathEscape(c.ID) + "?" + query.Encode()
		if err := to.Call(ctx, http.MethodDelete, path, nil, nil, nil); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("there is no closure %s", which)
	}
	return nil
}
