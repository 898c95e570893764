package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Who revoked an entry, by what he may: the operators of all tenants, or of one.
const (
	ActorAdmin       = "admin"
	ActorTenantAdmin = "tenant-admin"
)

// locks are figures of what happens to entries beside their waits and holds.
type locks struct {
	handover, slack metric.Float64Histogram
	keys            metric.Int64Histogram
	revoked         metric.Int64Counter

	outcomes, actors *sets[string]
}

// slackBuckets are shares of a lease.
func slackBuckets() []float64 { return []float64{0, .05, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1} }

// handoverBuckets are fine where hand-overs are: a grant takes as long as an answer, or as a call
// of the store.
func handoverBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
}

func (m *Metrics) makeLocks(meter metric.Meter) error {
	var errs [4]error
	l := &m.locks
	l.handover, errs[0] = meter.Float64Histogram("fencepost.lock.handover.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from when this replica saw that an entry which waited came to hold, to its answer."),
		metric.WithExplicitBucketBoundaries(handoverBuckets()...))
	l.slack, errs[1] = meter.Float64Histogram("fencepost.lease.renew.slack", metric.WithUnit("1"),
		metric.WithDescription("Share of the TTL that was left at a renewal, of at most ten renewals a second."),
		metric.WithExplicitBucketBoundaries(slackBuckets()...))
	l.keys, errs[2] = meter.Int64Histogram("fencepost.lock.acquire.keys", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that one acquire asked for."),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32))
	l.revoked, errs[3] = meter.Int64Counter("fencepost.lock.revocations", metric.WithUnit("{entry}"),
		metric.WithDescription("Entries that operators ended."))
	l.outcomes = newClosedSets(word("outcome"), Other, waitOutcomes()...)
	l.actors = newClosedSets(word("actor"), Other, ActorAdmin, ActorTenantAdmin)
	return errors.Join(errs[:]...)
}

// HandedOver records how long it took to answer an acquire that had waited, from when this replica
// saw that its turn had come.
func (m *Metrics) HandedOver(ctx context.Context, d time.Duration) {
	m.locks.handover.Record(ctx, d.Seconds())
}

// Acquired records how many locks an acquire asked for, and how its wait ended, as with
// [Metrics.Waited].
func (m *Metrics) Acquired(ctx context.Context, outcome string, keys int) {
	m.locks.keys.Record(ctx, int64(keys), m.locks.outcomes.of(outcome).record...)
}

// RenewedWith records what share of its TTL a lease had left when it was renewed.
func (m *Metrics) RenewedWith(ctx context.Context, slack float64) { m.locks.slack.Record(ctx, slack) }

// Revoked counts an entry that an operator ended. actor is his scope.
func (m *Metrics) Revoked(ctx context.Context, actor string) {
	m.locks.revoked.Add(ctx, 1, m.locks.actors.of(actor).add...)
}

// holdKey is how a hold was, and how it ended.
type holdKey struct{ mode, end string }

func (k holdKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("mode", k.mode), attribute.String("end", k.end)}
}

func modes() []string { return []string{"exclusive", "shared", "semaphore"} }

func holdKeys() (all []holdKey) {
	for _, mode := range modes() {
		for _, end := range []string{HoldReleased, HoldExpired, HoldRevoked, HoldUnknown, Other} {
			all = append(all, holdKey{mode, end})
		}
	}
	return all
}

// Held records how long an entry held, from the grant to its end. mode is that of its first lock.
func (m *Metrics) Held(ctx context.Context, mode, end string, d time.Duration) {
	key := holdKey{mode, end}
	if !m.holds.knows(key) {
		key.end = Other
	}
	m.hold.Record(ctx, d.Seconds(), m.holds.of(key).record...)
}
