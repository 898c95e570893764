package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fencepost/fencepost/lock/quota"
)

// The words that the methods of [Metrics] take. A word that a method does not
// know is counted as [Other].
const (
	// How the wait for a lock ended.
	WaitGranted   = "granted"
	WaitTimeout   = "timeout"   // the client's wait_seconds were over
	WaitCancelled = "cancelled" // the client went away, or gave its place back
	WaitRefused   = "refused"   // not let into the queue: held and no wait, quota, deadlock
	WaitError     = "error"

	// How a hold ended.
	HoldReleased = "released"
	HoldExpired  = "expired"
	HoldRevoked  = "revoked"
	HoldUnknown  = "unknown"

	// How a renewal or an operation of the store ended. Stores may add outcomes.
	OutcomeOK    = "ok"
	OutcomeLost  = "lost" // the entry was gone
	OutcomeLate  = "late" // of a renewal: it was gone, because its lease had run out
	OutcomeError = "error"

	Other = "other"
)

// Most keys that an attribute set with names from outside this package may have,
// each far above what a server uses and far below the SDK's 2,000.
const (
	maxOperations = 100
	maxRequests   = 1000
)

// Metrics are the figures of the service. Methods may be called at any rate
// from any goroutine; they allocate nothing. A sampled span in ctx becomes an
// exemplar. Words are plain strings so that a package can declare the few
// methods that it needs in an interface of its own.
type Metrics struct {
	wait, hold, store, request metric.Float64Histogram
	batch                      metric.Int64Histogram

	renewals, feedRestarts, deadlocks, refusals metric.Int64Counter

	waits      *sets[waitKey]
	holds      *sets[holdKey]
	renewed    *sets[string]
	quotas     *sets[quotaKey]
	operations *sets[operationKey]
	requests   *sets[requestKey]

	locks    locks
	webhooks webhooks
	streams  streams
	tenants  tenants

	inFlight atomic.Int64
	queues   atomic.Pointer[func() (Queues, bool)]
	counts   atomic.Pointer[func() Counts]
	replicas atomic.Pointer[func() (int, bool)]
	lines    atomic.Pointer[LineWriter]
	feed     atomic.Pointer[feedLag]
	secured  atomic.Pointer[func() Secured]
	refusal  atomic.Pointer[func() string]

	principals atomic.Pointer[func() map[string]bool]
	storeSize  atomic.Pointer[func() (int64, int64)]
	usage      atomic.Pointer[func(func(Usage))]
}

type waitKey struct {
	outcome   string
	contended bool
}

type operationKey struct{ operation, outcome string }

type requestKey struct {
	method, route, status string
	wait                  bool
}

// NewMetrics makes the figures out of a meter. version stands in
// fencepost_build_info. Tests may pass the meter of a no-op provider.
func NewMetrics(meter metric.Meter, version string) (*Metrics, error) {
	m := &Metrics{
		waits:      newClosedSets(waitKey.attributes, waitKey{Other, true}, waitKeys()...),
		holds:      newClosedSets(holdKey.attributes, holdKey{Other, Other}, holdKeys()...),
		renewed:    newClosedSets(word("outcome"), Other, renewalOutcomes()...),
		operations: newSets(maxOperations, operationKey.attributes, operationKey{Other, Other}),
		quotas:     newQuotaSets(),
		requests:   newSets(maxRequests, requestKey.attributes, requestKey{Other, Other, Other, false}),
	}
	err := errors.Join(
		m.makeHistograms(meter),
		m.makeLocks(meter),
		m.makeCounters(meter),
		m.makeObservedCounters(meter),
		m.makeGauges(meter, version),
		m.makeTLS(meter),
		m.makePrincipals(meter),
		m.makeStoreSize(meter),
		m.makeWebhooks(meter),
		m.makeStreams(meter),
		m.makeUsage(meter),
		m.makeRefusal(meter),
	)
	if err != nil {
		return nil, err
	}
	m.startAtZero()
	return m, nil
}

func word(key string) func(string) []attribute.KeyValue {
	return func(value string) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String(key, value)}
	}
}

func waitOutcomes() []string {
	return []string{WaitGranted, WaitTimeout, WaitCancelled, WaitRefused, WaitError}
}

func renewalOutcomes() []string {
	return []string{OutcomeOK, OutcomeLate, OutcomeLost, OutcomeError}
}

func waitKeys() []waitKey {
	var keys []waitKey
	for _, outcome := range waitOutcomes() {
		keys = append(keys, waitKey{outcome, false}, waitKey{outcome, true})
	}
	return keys
}

func (k waitKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("outcome", k.outcome),
		attribute.Bool("contended", k.contended),
	}
}

func (k operationKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("operation", k.operation),
		attribute.String("outcome", k.outcome),
	}
}

func (k requestKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("method", k.method),
		attribute.String("route", k.route),
		attribute.String("status", k.status),
		attribute.Bool("wait", k.wait),
	}
}

// startAtZero makes counters visible before their first event: the rate of a
// series that begins with its first event misses that event.
func (m *Metrics) startAtZero() {
	ctx := context.Background()
	m.feedRestarts.Add(ctx, 0)
	m.deadlocks.Add(ctx, 0)
	for _, name := range quotaNames() {
		m.refusals.Add(ctx, 0, m.quotas.of(quotaKey{Other, name}).add...)
	}
	for _, outcome := range webhookOutcomes() {
		m.webhooks.attempts.Add(ctx, 0, m.webhooks.outcomes.of(outcome).add...)
	}
	m.streams.clients.Add(ctx, 0)
	m.streams.dropped.Add(ctx, 0)
	for _, actor := range []string{ActorAdmin, ActorTenantAdmin} {
		m.locks.revoked.Add(ctx, 0, m.locks.actors.of(actor).add...)
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

// Deadlocked counts a cycle of waits that was refused.
func (m *Metrics) Deadlocked(ctx context.Context) { m.deadlocks.Add(ctx, 1) }

// Renewed counts an attempt to renew.
func (m *Metrics) Renewed(ctx context.Context, outcome string) {
	m.renewals.Add(ctx, 1, m.renewed.of(outcome).add...)
}

func quotaNames() []string {
	var names []string
	for _, l := range quota.All() {
		names = append(names, l.String())
	}
	return names
}

// StoreOperation records one call to the store. Operations and outcomes are
// short fixed words ("txn", "range", "keepalive"; "ok", "timeout").
func (m *Metrics) StoreOperation(ctx context.Context, operation, outcome string, d time.Duration) {
	m.store.Record(ctx, d.Seconds(), m.operations.of(operationKey{operation, outcome}).record...)
}

// Batched records how many requests shared one write to the store.
func (m *Metrics) Batched(ctx context.Context, size int) {
	m.batch.Record(ctx, int64(size))
}

// FeedRestarted counts a feed that had to begin again with a full view.
func (m *Metrics) FeedRestarted(ctx context.Context) { m.feedRestarts.Add(ctx, 1) }

// RequestStarted counts a request that came in. [Metrics.RequestDone] must follow.
func (m *Metrics) RequestStarted() { m.inFlight.Add(1) }

// RequestDone records a request that was answered. route is the pattern that
// matched ("/locks/:name"), never the path; empty means that none did. wait says
// that the request was allowed to wait for a lock: its duration is then the
// client's choice and must not count as latency.
func (m *Metrics) RequestDone(ctx context.Context, method, route string, status int, wait bool, d time.Duration) {
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
