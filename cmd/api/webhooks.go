package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// resolveWebhooks turns the flags into where webhooks may go.
func (c *config) resolveWebhooks() (err error) {
	ports := c.webhooks
	ports.Allow = ""
	if _, wrong := webhook.NewPolicy(webhook.Settings{Allow: c.webhooks.Allow}); wrong != nil {
		err = usagef("--webhook-allow: %v", wrong)
	}
	if _, wrong := webhook.NewPolicy(ports); wrong != nil {
		err = errors.Join(err, usagef("--webhook-ports: %v", wrong))
	}
	if err == nil {
		c.policy, err = webhook.NewPolicy(c.webhooks)
	}
	return err
}

// newWebhooks returns the use cases of subscriptions, with a copy of all of them that is
// kept up to date until stop is called, which waits for that.
func newWebhooks(
	c *config, t *telemetry.Telemetry, records store.RecordStore, tokenKey []byte, limits *quota.Book,
	journal *audit.Journal,
) (s *subscription.Subscriptions, stop func()) {
	keys := subscription.NewKeys(tokenKey)
	directory := subscription.NewDirectory(records, keys, t.Logger())
	s = subscription.New(subscription.Config{
		Records: records, Keys: keys, Policy: c.policy, Directory: directory, Limits: limits.Of,
		Journal: journal,
	})
	return s, background(directory.Run)
}

// shardLogger returns the logger of shards. A development server mostly owns all of
// them, and logs one line instead of one for each.
func shardLogger(c *config, all *slog.Logger) *slog.Logger {
	if !c.dev {
		return all
	}
	return slog.New(warnings{all.Handler()})
}

// warnings drops records below a warning.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// sendWebhooks does this process's part of the sending until stop is called, which waits for
// what is under way.
func sendWebhooks(
	c *config, t *telemetry.Telemetry, s *service.Service, listed *replicas.List,
	subscribed *subscription.Subscriptions, records store.RecordStore, limits *quota.Book,
) (stop func()) {
	if c.dev {
		t.Logger().Info("this server sends webhooks")
	}
	box := outbox.New(outbox.Config{
		Self: listed.Sharing().Self, Locks: s, Entries: s.Entries, Holders: s.Locks,
		Records:       records,
		Subscriptions: subscribed.Directory,
		Sender:        webhook.NewSender(webhook.SenderConfig{Policy: c.policy}),
		Sharing:       listed.Settled,
		Metrics:       t.Metrics(),
		Logger:        shardLogger(c, t.Logger()),
		Pool: webhook.PoolConfig{Next: func(tenant string) time.Duration {
			return limits.Next(tenant, quota.WebhookAttempts)
		}},
	})
	t.Metrics().ObserveWebhooks(func() telemetry.Webhooks {
		now := box.Backlog()
		return telemetry.Webhooks{Backlog: now.Deliveries, Oldest: age(now.Oldest), Lag: age(now.Behind)}
	})
	return background(box.Run)
}

// age is how long ago an instant was; 0 of the zero one, which is none.
func age(since time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return max(0, time.Since(since))
}

// resumeTime is for how long a start waits to learn where webhooks stopped.
const resumeTime = 10 * time.Second

// resume has etcd's feed begin where webhooks stopped, so that nothing of what happened while no
// server ran is missed. If its history does not reach back to there, and on ZooKeeper, webhooks
// report that something is missed.
func resume(ctx context.Context, t *telemetry.Telemetry, opened openedStore) {
	s, can := opened.(interface{ Resume(number uint64) })
	if !can {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	since, err := outbox.Since(ctx, opened.smallRecords())
	if err != nil {
		t.Logger().Warn("the last position of the webhooks could not be read", "error", err)
	}
	s.Resume(since)
}
