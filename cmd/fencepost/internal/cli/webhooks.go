package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

func (a *app) webhooksCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "webhooks",
		Short: "Manage webhooks (scope webhooks:write)",
	}
	command.AddCommand(
		a.webhookList(), a.webhookGet(), a.webhookCreate(), a.webhookDelete(), a.webhookDeliveries(),
		a.webhookRedeliver(), a.webhookTest(),
	)
	return command
}

// webhookPath is where a webhook is.
func webhookPath(parts ...string) string {
	path := "/webhooks"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

func (a *app) webhookList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List webhooks", Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, to *client.Client, _ []string) error {
			all, ids := []api.Webhook{}, []string{}
			for cursor := ""; ; {
				var page api.WebhookList
				path := webhookPath() + "?" + url.Values{"cursor": {cursor}}.Encode()
				if cursor == "" {
					path = webhookPath()
				}
				if err := to.Call(ctx, http.MethodGet, path, nil, nil, &page); err != nil {
					return err
				}
				all = append(all, page.Webhooks...)
				if cursor = page.NextCursor; cursor == "" {
					break
				}
			}
			for _, w := range all {
				ids = append(ids, w.ID)
			}
			return a.print(all, ids, func(w *tabwriter.Writer) { webhooks(w, all...) })
		}),
	}
}

func webhooks(w *tabwriter.Writer, all ...api.Webhook) {
	row(w, "ID", "URL", "LOCKS", "EVENTS", "STATE")
	for _, h := range all {
		state := "active"
		switch {
		case h.Disabled != "":
			state = "disabled: " + h.Disabled
		case h.Paused:
			state = "paused"
		case h.FailingSince != "":
			state = "failing for " + ago(h.FailingSince)
		}
		row(w, h.ID, h.URL, h.Locks, strings.Join(h.Events, ","), state)
	}
}

func (a *app) webhookGet() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show a webhook", Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			var hook api.Webhook
			if err := to.Call(ctx, http.MethodGet, webhookPath(args[0]), nil, nil, &hook); err != nil {
				return err
			}
			return a.print(hook, []string{hook.ID}, func(w *tabwriter.Writer) { webhooks(w, hook) })
		}),
	}
}

func (a *app) webhookCreate() *cobra.Command {
	body := api.WebhookBody{}
	var locks, description string
	command := &cobra.Command{
		Use: "create URL", Short: "Make a webhook, and print its secret, once", Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			body.URL, body.Locks = args[0], &locks
			if description != "" {
				body.Description = &description
			}
			var hook api.NewWebhook
			if err := to.Call(ctx, http.MethodPost, webhookPath(), nil, body, &hook); err != nil {
				return err
			}
			return a.print(hook, []string{hook.ID}, func(w *tabwriter.Writer) {
				row(w, "id", hook.ID)
				row(w, "secret", hook.Secret)
			})
		}),
	}
	command.Flags().StringSliceVar(&body.Events, "events", nil, "`types` of events; all by default")
	command.Flags().StringVar(&locks, "locks", "*", "`pattern` of names")
	command.Flags().StringVar(&description, "description", "", "`text` for people")
	return command
}

func (a *app) webhookDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a webhook", Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			return to.Call(ctx, http.MethodDelete, webhookPath(args[0]), nil, nil, nil)
		}),
	}
}

func (a *app) webhookDeliveries() *cobra.Command {
	return &cobra.Command{
		Use: "deliveries ID", Short: "List the newest deliveries", Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			var page api.DeliveryPage
			path := webhookPath(args[0], "deliveries")
			if err := to.Call(ctx, http.MethodGet, path, nil, nil, &page); err != nil {
				return err
			}
			ids := []string{}
			for _, d := range page.Deliveries {
				ids = append(ids, d.ID)
			}
			return a.print(page.Deliveries, ids, func(w *tabwriter.Writer) {
				row(w, "ID", "TYPE", "LOCK", "STATE", "TRIED", "AGE", "LAST ANSWER")
				for _, d := range page.Deliveries {
					row(w, d.ID, d.Type, d.Lock, d.State, d.Tried, ago(d.CreatedAt), answerOf(d))
				}
			})
		}),
	}
}

// answerOf is how the last attempt ended.
func answerOf(d api.Delivery) string {
	if len(d.Attempts) == 0 {
		return ""
	}
	last := d.Attempts[len(d.Attempts)-1]
	if last.Error != "" {
		return last.Error
	}
	return strings.TrimSpace(fmt.Sprint(last.Status, " ", http.StatusText(last.Status)))
}

func (a *app) webhookRedeliver() *cobra.Command {
	return &cobra.Command{
		Use: "redeliver ID DELIVERY", Short: "Send a delivery again", Args: cobra.ExactArgs(2),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			path := webhookPath(args[0], "deliveries", args[1], "redeliver")
			return to.Call(ctx, http.MethodPost, path, nil, nil, nil)
		}),
	}
}

func (a *app) webhookTest() *cobra.Command {
	return &cobra.Command{
		Use: "test ID", Short: "Send a test event", Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			var made api.TestDelivery
			path := webhookPath(args[0], "test")
			if err := to.Call(ctx, http.MethodPost, path, nil, nil, &made); err != nil {
				return err
			}
			return a.print(made, []string{made.Delivery}, func(w *tabwriter.Writer) {
				row(w, "sent as the delivery "+made.Delivery)
			})
		}),
	}
}
