package main

import (
	"context"
	"sync"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// resolveWebhooks turns the flags into where webhooks may go.
func (c *config) resolveWebhooks() (err error) {
	if _, err := webhook.NewPolicy(webhook.Settings{Allow: c.webhooks.Allow}); err != nil {
		return usagef("--webhook-allow: %v", err)
	}
	if c.policy, err = webhook.NewPolicy(c.webhooks); err != nil {
		return usagef("--webhook-ports: %v", err)
	}
	return nil
}

// newWebhooks returns the use cases of subscriptions, with a copy of all of them that is
// kept up to date until stop is called, which waits for that.
func newWebhooks(c *config, t *telemetry.Telemetry, records store.RecordStore, tokenKey []byte) (s *subscription.Subscriptions, stop func()) {
	keys := subscription.NewKeys(tokenKey)
	directory := subscription.NewDirectory(records, keys, t.Logger())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { directory.Run(ctx) })
	s = subscription.New(subscription.Config{Records: records, Keys: keys, Policy: c.policy, Directory: directory})
	return s, func() {
		cancel()
		running.Wait()
	}
}
