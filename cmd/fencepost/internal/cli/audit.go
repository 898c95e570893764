package cli

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

func (a *app) auditCommand() *cobra.Command {
	var tenant string
	var since time.Duration
	command := &cobra.Command{
		Use:   "audit",
		Short: "List what operators did, newest first",
		Long: `List what operators did, newest first, with their reasons.

It needs a token with the scope tenant-admin or admin.`,
		Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, to *client.Client, _ []string) error {
			query := url.Values{"since": {string(api.InstantOf(time.Now().Add(-since)))}}
			if tenant != "" {
				query.Set("tenant", tenant)
			}
			all := []api.AuditRecord{}
			err := pages(ctx, to, "/admin/audit", query, func(page *api.AuditPage) string {
				all = append(all, page.Records...)
				return page.NextCursor
			})
			if err != nil {
				return err
			}
			return a.listAudit(all)
		}),
	}
	command.Flags().StringVar(&tenant, "tenant", "",
		"`name` of the tenant; all that the token may see by default")
	spanVar(command.Flags(), &since, "since", 24*time.Hour, "how far back")
	return command
}

// objectOf names the locks and the holder, or the webhook.
func objectOf(o *api.AuditObject) string {
	text := strings.Join(o.Locks, " ")
	switch {
	case o.Holder != "":
		return text + " of " + o.Holder
	case o.Webhook != nil:
		return strings.TrimSpace(text + " webhook " + cmp.Or(o.Webhook.Receiver, o.Webhook.ID))
	}
	return cmp.Or(text, "-")
}

func (a *app) listAudit(all []api.AuditRecord) error {
	ids := namesOf(all, func(r api.AuditRecord) string { return r.ID })
	return a.print(all, ids, func(w *tabwriter.Writer) {
		row(w, "TIME", "OPERATOR", "ACTION", "OBJECT", "RESULT", "REASON")
		for _, r := range all {
			row(w, r.At, r.Actor.Subject, r.Action, objectOf(&r.Object), r.Result, cmp.Or(r.Reason, "-"))
		}
	})
}
