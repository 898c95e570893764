package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fencepost/fencepost/quota"
)

// The words that the methods of [Metrics] take. A method counts a word that it does not know as
// [Other].
const (
	// How the wait for a lock ended.
	WaitGranted   = "granted"
	WaitTimeout   = "timeout"   // the client's wait_seconds were over
	WaitCancelled = "cancelled" // the client went away, or left the queue
	WaitRefused   = "refused"   // not let into the queue, or rejected there
	WaitError     = "error"

	// How a hold ended.
	HoldReleased = "released"
	HoldExpired  = "expired"
	HoldRevoked  = "revoked"
	HoldUnknown  = "unknown"

	// How a renewal or an operation of the store ended. Stores may add outcomes.
	OutcomeOK    = "ok"
	OutcomeLost  = "lost" // the entry was gone
	OutcomeLate  = "late" // of a renewal: the entry was gone, because its lease had expired
	OutcomeError = "error"

	// The scope of an operator that revoked an entry.
	ActorAdmin       = "admin"
	ActorTenantAdmin = "tenant-admin"

	Other = "other"
)

// Bounds of the attribute sets with names from outside this package. Each is far above what a
// server uses and far below the SDK's 2,000.
const (
	maxOperations = 100
	maxRequests   = 1000
)

// Metrics are the figures of the service. Methods may be called at any rate from any goroutine;
// they allocate nothing. A sampled span in ctx becomes an exemplar. Words are plain strings, so
// that a package can declare the few methods that it needs in an interface of its own.
type Metrics struct {
	meter metric.Meter

	wait, hold, handover, slack, staleAge, store, request, stream, webhook metric.Float64Histogram
	keys, batch                                                            metric.Int64Histogram

	renewals, revoked, deadlocks, refusals          metric.Int64Counter
	staleWrites                                     metric.Int64Counter
	feedRestarts, streamsDropped, webhookDeliveries metric.Int64Counter
	streams                                         metric.Int64UpDownCounter

	waits           *sets[waitKey]
	holds           *sets[holdKey]
	renewed         *sets[string]
	acquired        *sets[string]
	actors          *sets[string]
	webhookOutcomes *sets[string]
	quotas          *sets[string]
	operations      *sets[operationKey]
	requests        *sets[requestKey]

	inFlight atomic.Int64
	feed     atomic.Pointer[feedLag]
}

// NewMetrics makes the figures out of a meter. version stands in fencepost_build_info. Tests may
// pass the meter of a no-op provider.
func NewMetrics(meter metric.Meter, version string) (*Metrics, error) {
	m := &Metrics{
		meter:           meter,
		waits:           newClosedSets(waitKey.attributes, waitKey{Other, true}, waitKeys()...),
		holds:           newClosedSets(holdKey.attributes, holdKey{Other, Other}, holdKeys()...),
		renewed:         newClosedSets(word("outcome"), Other, renewalOutcomes()...),
		acquired:        newClosedSets(word("outcome"), Other, waitOutcomes()...),
		actors:          newClosedSets(word("actor"), Other, ActorAdmin, ActorTenantAdmin),
		webhookOutcomes: newClosedSets(word("outcome"), Other, webhookOutcomes()...),
		operations:      newSets(maxOperations, operationKey.attributes, operationKey{Other, Other}),
		quotas:          newClosedSets(word("quota"), Other, quotaNames()...),
		requests: newSets(maxRequests, requestKey.attributes,
			requestKey{Other, Other, Other, false}),
	}
	if err := errors.Join(m.makeHistograms(), m.makeCounters()); err != nil {
		return nil, err
	}
	m.startAtZero()
	m.observeProcess(version)
	return m, nil
}

// startAtZero makes counters visible before their first event: the rate of a
// series that begins with its first event misses that event.
func (m *Metrics) startAtZero() {
	ctx := context.Background()
	for _, c := range []metric.Int64Counter{
		m.feedRestarts, m.deadlocks, m.staleWrites, m.streamsDropped,
	} {
		c.Add(ctx, 0)
	}
	m.streams.Add(ctx, 0)
	for _, name := range quotaNames() {
		m.refusals.Add(ctx, 0, m.quotas.of(name).add...)
	}
	for _, outcome := range webhookOutcomes() {
		m.webhookDeliveries.Add(ctx, 0, m.webhookOutcomes.of(outcome).add...)
	}
	for _, actor := range []string{ActorAdmin, ActorTenantAdmin} {
		m.revoked.Add(ctx, 0, m.actors.of(actor).add...)
	}
	for _, outcome := range renewalOutcomes() {
		m.renewals.Add(ctx, 0, m.renewed.of(outcome).add...)
	}
}

// Waited records how long an acquire took from its arrival to its end, whatever
// the end was. contended says that it was not granted on arrival.
func (m *Metrics) Waited(ctx context.Context, outcome string, contended bool, d time.Duration) {
	m.wait.Record(ctx, d.Seconds(), m.waits.of(waitKey{outcome, contended}).record...)
}

// Acquired records how many locks an acquire asked for, and how its wait ended, as with
// [Metrics.Waited].
func (m *Metrics) Acquired(ctx context.Context, outcome string, keys int) {
	m.keys.Record(ctx, int64(keys), m.acquired.of(outcome).record...)
}

// HandedOver records how long it took to answer an acquire that had waited, from when this replica
// saw the grant.
func (m *Metrics) HandedOver(ctx context.Context, d time.Duration) {
	m.handover.Record(ctx, d.Seconds())
}

// Held records how long an entry held, from the grant to its end. mode is that of its first lock.
func (m *Metrics) Held(ctx context.Context, mode, end string, d time.Duration) {
	key := holdKey{mode, end}
	if !m.holds.knows(key) {
		key.end = Other
	}
	m.hold.Record(ctx, d.Seconds(), m.holds.of(key).record...)
}

// Deadlocked counts a cycle of waits that was refused.
func (m *Metrics) Deadlocked(ctx context.Context) { m.deadlocks.Add(ctx, 1) }

// Renewed counts an attempt to renew.
func (m *Metrics) Renewed(ctx context.Context, outcome string) {
	m.renewals.Add(ctx, 1, m.renewed.of(outcome).add...)
}

// RenewedWith records what share of its TTL a lease had left when it was renewed.
func (m *Metrics) RenewedWith(ctx context.Context, slack float64) { m.slack.Record(ctx, slack) }

// Revoked counts an entry that an operator ended. actor is the operator's scope.
func (m *Metrics) Revoked(ctx context.Context, actor string) {
	m.revoked.Add(ctx, 1, m.actors.of(actor).add...)
}

// StaleWrite counts a write that a resource rejected and reported, and records how long after the
// end of its hold it came, unless that is unknown.
func (m *Metrics) StaleWrite(ctx context.Context, late time.Duration) {
	m.staleWrites.Add(ctx, 1)
	if late > 0 {
		m.staleAge.Record(ctx, late.Seconds())
	}
}

// StoreOperation records one call to the store. Operations and outcomes are
// short fixed words ("txn", "range", "keepalive"; "ok", "timeout").
func (m *Metrics) StoreOperation(ctx context.Context, operation, outcome string, d time.Duration) {
	m.store.Record(ctx, d.Seconds(), m.operations.of(operationKey{operation, outcome}).record...)
}

// Batched records how many requests shared one write to the store.
func (m *Metrics) Batched(ctx context.Context, size int) { m.batch.Record(ctx, int64(size)) }

// FeedRestarted counts a feed that had to begin again with a full view.
func (m *Metrics) FeedRestarted(ctx context.Context) { m.feedRestarts.Add(ctx, 1) }

// StreamOpened counts a stream that begins, so long after its request.
// [Metrics.StreamClosed] must follow.
func (m *Metrics) StreamOpened(ctx context.Context, d time.Duration) {
	m.streams.Add(ctx, 1)
	m.stream.Record(ctx, d.Seconds())
}

// StreamClosed counts a stream that has ended; dropped says that its client took nothing.
func (m *Metrics) StreamClosed(ctx context.Context, dropped bool) {
	m.streams.Add(ctx, -1)
	if dropped {
		m.streamsDropped.Add(ctx, 1)
	}
}

// WebhookAttempted records an attempt to deliver a webhook. outcome is a word of package webhook.
func (m *Metrics) WebhookAttempted(ctx context.Context, outcome string, d time.Duration) {
	of := m.webhookOutcomes.of(outcome)
	m.webhookDeliveries.Add(ctx, 1, of.add...)
	m.webhook.Record(ctx, d.Seconds(), of.record...)
}

// RequestStarted counts a request that came in. [Metrics.RequestDone] must follow.
func (m *Metrics) RequestStarted() { m.inFlight.Add(1) }

// RequestDone records a request that was answered. route is the pattern that
// matched ("/locks/:name"), never the path; empty means that none did. wait says
// that the request was allowed to wait for a lock: its duration is then the
// client's choice and must not count as latency.
func (m *Metrics) RequestDone(
	ctx context.Context, method, route string, status int, wait bool, d time.Duration,
) {
	m.inFlight.Add(-1)
	key := requestKey{knownMethod(method), route, statusClass(status), wait}
	if route == "" {
		key.route = "unmatched"
	}
	m.request.Record(ctx, d.Seconds(), m.requests.of(key).record...)
}

// knownMethod keeps methods that a client made up out of the attributes.
func knownMethod(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return Other
}

func statusClass(status int) string {
	classes := [...]string{Other, "1xx", "2xx", "3xx", "4xx", "5xx"}
	if class := status / 100; class > 0 && class < len(classes) {
		return classes[class]
	}
	return Other
}

func word(key string) func(string) []attribute.KeyValue {
	return func(value string) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String(key, value)}
	}
}

func quotaNames() []string {
	var names []string
	for _, l := range quota.All() {
		names = append(names, l.String())
	}
	return names
}
