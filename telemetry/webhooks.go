package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Webhooks is what this replica has to deliver.
type Webhooks struct {
	Backlog int           // deliveries that are not made yet, to receivers that are sent something now
	Oldest  time.Duration // for how long the oldest of them is due that does not wait because of its receiver
	Lag     time.Duration // how long ago the first event happened that is neither delivered nor kept
}

// webhooks are the figures of deliveries.
type webhooks struct {
	attempts metric.Int64Counter
	took     metric.Float64Histogram
	outcomes *sets[string]
	read     atomic.Pointer[func() Webhooks]
}

// ObserveWebhooks names the source of these figures, on the terms of [Metrics.ObserveQueues].
func (m *Metrics) ObserveWebhooks(read func() Webhooks) { m.webhooks.read.Store(&read) }

// WebhookAttempted records an attempt to deliver a webhook. outcome is a word of package webhook.
func (m *Metrics) WebhookAttempted(ctx context.Context, outcome string, d time.Duration) {
	of := m.webhooks.outcomes.of(outcome)
	m.webhooks.attempts.Add(ctx, 1, of.add...)
	m.webhooks.took.Record(ctx, d.Seconds(), of.record...)
}

func webhookOutcomes() []string {
	return []string{"delivered", "failed", "throttled", "gone", "rejected", "expired"}
}

func webhookBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30}
}

func (m *Metrics) makeWebhooks(meter metric.Meter) error {
	var errs [6]error
	w := &m.webhooks
	w.outcomes = newClosedSets(word("outcome"), Other, webhookOutcomes()...)
	w.attempts, errs[0] = meter.Int64Counter("fencepost.webhook.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts to deliver a webhook."))
	w.took, errs[1] = meter.Float64Histogram("fencepost.webhook.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that an attempt to deliver a webhook took."), metric.WithExplicitBucketBoundaries(webhookBuckets()...))
	backlog, err := meter.Int64ObservableGauge("fencepost.webhook.backlog", metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries of this replica's share that are not made yet, but of receivers that are paused or disabled."))
	errs[2] = err
	oldest, err := meter.Float64ObservableGauge("fencepost.webhook.oldest.age", metric.WithUnit("s"),
		metric.WithDescription("For how long the oldest of them is due that does not wait because of its receiver."))
	errs[3] = err
	lag, err := meter.Float64ObservableGauge("fencepost.webhook.lag", metric.WithUnit("s"),
		metric.WithDescription("How long ago the first event happened that is neither delivered nor kept to be tried again."))
	errs[4] = err
	_, errs[5] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if read := w.read.Load(); read != nil {
			now := (*read)()
			o.ObserveInt64(backlog, int64(now.Backlog))
			o.ObserveFloat64(oldest, now.Oldest.Seconds())
			o.ObserveFloat64(lag, now.Lag.Seconds())
		}
		return nil
	}, backlog, oldest, lag)
	return errors.Join(errs[:]...)
}
