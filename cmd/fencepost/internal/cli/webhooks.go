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
		Use:   "webhooks COMMAND",
		Short: "Manage webhooks (scope webhooks:write)",
	}
	below := func(use, short string, work work) {
		arguments := cobra.ExactArgs(strings.Count(use, " ")) // the words after the name
		command.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: arguments, RunE: a.using(work),
		})
	}
	below("list", "List webhooks", a.listWebhooks)
	below("get ID", "Show a webhook", a.getWebhook)
	command.AddCommand(a.createWebhook())
	below("delete ID", "Delete a webhook",
		func(ctx context.Context, to *client.Client, args []string) error {
			return to.Call(ctx, http.MethodDelete, webhookPath(args...), nil, nil, nil)
		})
	below("deliveries ID", "List the newest deliveries", a.listDeliveries)
	below("redeliver ID DELIVERY", "Send a delivery again",
		func(ctx context.Context, to *client.Client, args []string) error {
			path := webhookPath(args[0], "deliveries", args[1], "redeliver")
			return to.Call(ctx, http.MethodPost, path, nil, nil, nil)
		})
	below("test ID", "Send a test event", a.testWebhook)
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

func (a *app) listWebhooks(ctx context.Context, to *client.Client, _ []string) error {
	all := []api.Webhook{}
	err := pages(ctx, to, webhookPath(), url.Values{}, func(page *api.WebhookList) string {
		all = append(all, page.Webhooks...)
		return page.NextCursor
	})
	if err != nil {
		return err
	}
	ids := namesOf(all, func(hook api.Webhook) string { return hook.ID })
	return a.print(all, ids, func(w *tabwriter.Writer) { webhooks(w, all...) })
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

func (a *app) getWebhook(ctx context.Context, to *client.Client, args []string) error {
	var hook api.Webhook
	if err := to.Call(ctx, http.MethodGet, webhookPath(args...), nil, nil, &hook); err != nil {
		return err
	}
	return a.print(hook, []string{hook.ID}, func(w *tabwriter.Writer) { webhooks(w, hook) })
}

func (a *app) createWebhook() *cobra.Command {
	body := api.WebhookBody{Locks: new(string), Description: new(string)}
	command := &cobra.Command{
		Use: "create URL", Short: "Create a webhook, and print its secret once", Args: cobra.ExactArgs(1),
		RunE: a.using(func(ctx context.Context, to *client.Client, args []string) error {
			var hook api.NewWebhook
			body.URL = args[0]
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
	command.Flags().StringVar(body.Locks, "locks", "*", "`pattern` of names")
	command.Flags().StringVar(body.Description, "description", "", "`text` for people")
	return command
}

func (a *app) listDeliveries(ctx context.Context, to *client.Client, args []string) error {
	var page api.DeliveryPage
	path := webhookPath(args[0], "deliveries")
	if err := to.Call(ctx, http.MethodGet, path, nil, nil, &page); err != nil {
		return err
	}
	ids := namesOf(page.Deliveries, func(d api.Delivery) string { return d.ID })
	return a.print(page.Deliveries, ids, func(w *tabwriter.Writer) {
		row(w, "ID", "TYPE", "LOCK", "STATE", "TRIED", "AGE", "LAST ANSWER")
		for _, d := range page.Deliveries {
			row(w, d.ID, d.Type, d.Lock, d.State, d.Tried, ago(d.CreatedAt), answerOf(d))
		}
	})
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

func (a *app) testWebhook(ctx context.Context, to *client.Client, args []string) error {
	var made api.TestDelivery
	path := webhookPath(args[0], "test")
	if err := to.Call(ctx, http.MethodPost, path, nil, nil, &made); err != nil {
		return err
	}
	return a.printLine(made, made.Delivery, "sent as the delivery %s", made.Delivery)
}
