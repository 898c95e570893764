package telemetry

import (
	"context"
	"errors"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Queues are the queues of all tenants at one moment, as this replica sees them.
type Queues struct {
	ByMode     map[string]QueueCounts // "exclusive", "shared", "semaphore"
	OldestWait time.Duration          // of the waiter that has waited longest; 0 without waiters
	Deepest    int                    // how many wait for the lock for which most do
	Revision   uint64                 // of the store, as far as this replica knows: no fence is above it
}

// QueueCounts are the entries of one mode.
type QueueCounts struct{ Held, Waiting int }

// ObserveQueues names the source of the figures of the queues. read is called
// at each collection, from any goroutine, until [Telemetry.Shutdown]; it must
// not block. While it does not know them, their gauges are left out.
func (m *Metrics) ObserveQueues(read func() (q Queues, known bool)) { m.queues.Store(&read) }

// Counts are what somebody else counts exactly, where it happens, since the process
// started.
type Counts struct {
	// Entries that the store removed because nobody renewed them: those that held, and that waited.
	HoldersExpired, WaitersExpired uint64

	Contradictions uint64 // rings of orders in which locks are taken
	EventsDropped  uint64 // that could not be told to the log and the figures in time
}

// ObserveCounts names the source of these counts, on the terms of
// [Metrics.ObserveQueues]. Without a source they are 0.
func (m *Metrics) ObserveCounts(read func() Counts) { m.counts.Store(&read) }

// ObserveReplicas names the source of the number of replicas that serve the store, on the
// terms of [Metrics.ObserveQueues].
func (m *Metrics) ObserveReplicas(read func() (live int, known bool)) { m.replicas.Store(&read) }

// feedLag is what the feed last said of itself.
type feedLag struct {
	lag time.Duration
	at  time.Time
}

// FeedLag says how far this replica's view is behind the store at this moment.
// The gauge adds the time since the last call: a feed that falls silent is a
// feed that falls behind.
func (m *Metrics) FeedLag(lag time.Duration) { m.feed.Store(&feedLag{lag, time.Now()}) }

// Bucket boundaries, in seconds.
func waitBuckets() []float64 {
	return []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
}

func holdBuckets() []float64 { return append(waitBuckets(), 86400) }

func storeBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
}

// requestBuckets are those of OpenTelemetry's http.server.request.duration, finer
// below 5 ms, where nearly all requests end, and with the longest wait at the end.
func requestBuckets() []float64 {
	return []float64{
		.0005, .001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30, 60,
	}
}

func (m *Metrics) makeHistograms(meter metric.Meter) error {
	var errs []error
	seconds := func(name, description string, buckets []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithDescription(description), metric.WithUnit("s"),
			metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	m.wait = seconds("fencepost.lock.wait.duration",
		"Time from the arrival of an acquire to its end.", waitBuckets())
	m.hold = seconds("fencepost.lock.hold.duration",
		"Time from a grant to the end of the hold.", holdBuckets())
	m.store = seconds("fencepost.store.operation.duration",
		"Time that one call to the store took.", storeBuckets())
	m.request = seconds("fencepost.http.request.duration",
		"Time from a request to its answer.", requestBuckets())

	var err error
	m.batch, err = meter.Int64Histogram("fencepost.store.batch.size", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that shared one write to the store."),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256))
	return errors.Join(append(errs, err)...)
}

func (m *Metrics) makeCounters(meter metric.Meter) error {
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m.renewals = counter("fencepost.lock.renewals", "{renewal}", "Attempts to renew.")
	m.refusals = counter("fencepost.quota.refusals", "{request}", "Requests that were refused because a tenant has used up a quota.")
	m.deadlocks = counter("fencepost.lock.deadlocks", "{cycle}", "Cycles of waits that were refused.")
	m.feedRestarts = counter("fencepost.feed.restarts", "{restart}",
		"Times that the feed of the store began again with a full view.")
	return errors.Join(errs...)
}

// counters are the counts that are read when they are collected.
type counters struct {
	expirations, contradictions, eventsDropped, linesDropped metric.Int64ObservableCounter
	holders, waiters                                         metric.MeasurementOption
}

func (m *Metrics) makeObservedCounters(meter metric.Meter) error {
	var errs []error
	counter := func(name, unit, description string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	reason := func(value string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", value)))
	}
	c := counters{
		holders: reason("holder_gone"), waiters: reason("waiter_gone"),
		expirations: counter("fencepost.lock.expirations", "{entry}",
			"Entries that the store removed because nobody renewed them."),
		contradictions: counter("fencepost.lock.order_contradictions", "{ring}",
			"Orders in which locks are taken that were found to contradict each other."),
		eventsDropped: counter("fencepost.events.dropped", "{event}",
			"Events that came faster than the log and the figures took them."),
		linesDropped: counter("fencepost.log.dropped", "{line}",
			"Lines of the log that its reader did not take in time."),
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.observeCounters(o, c)
		return nil
	}, c.expirations, c.contradictions, c.eventsDropped, c.linesDropped)
	return errors.Join(append(errs, err)...)
}

func (m *Metrics) observeCounters(o metric.Observer, c counters) {
	var now Counts
	if read := m.counts.Load(); read != nil {
		now = (*read)()
	}
	o.ObserveInt64(c.expirations, int64(now.HoldersExpired), c.holders)
	o.ObserveInt64(c.expirations, int64(now.WaitersExpired), c.waiters)
	o.ObserveInt64(c.contradictions, int64(now.Contradictions))
	o.ObserveInt64(c.eventsDropped, int64(now.EventsDropped))
	dropped := uint64(0)
	if lines := m.lines.Load(); lines != nil {
		dropped = lines.Dropped()
	}
	o.ObserveInt64(c.linesDropped, int64(dropped))
}

// gauges are the figures that are read when they are collected.
type gauges struct {
	held, waiting, inFlight, build, revision, replicas, depth metric.Int64ObservableGauge
	oldestWait, feedLag                                       metric.Float64ObservableGauge
	buildInfo                                                 metric.MeasurementOption
}

func (m *Metrics) makeGauges(meter metric.Meter, version string) error {
	var errs []error
	count := func(name, unit, description string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	seconds := func(name, description string) metric.Float64ObservableGauge {
		g, err := meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	g := gauges{
		held:       count("fencepost.lock.held", "{entry}", "Entries that hold."),
		waiting:    count("fencepost.lock.waiting", "{entry}", "Entries that wait."),
		depth:      count("fencepost.queue.depth.max", "{entry}", "How many wait for the lock for which most do."),
		inFlight:   count("fencepost.http.requests.in_flight", "{request}", "Requests that are not answered yet."),
		revision:   count("fencepost.store.revision", "", "Revision of the store that this replica has seen; no fence is above it."),
		replicas:   count("fencepost.replicas", "{replica}", "Replicas that serve the store, as this one, which is among them, has listed them last."),
		build:      count("fencepost.build.info", "", "Always 1; the attributes say what is running."),
		oldestWait: seconds("fencepost.lock.oldest_wait", "How long the longest waiting entry has waited."),
		feedLag:    seconds("fencepost.feed.lag", "How far this replica's view may be behind the store."),
		buildInfo: metric.WithAttributes(
			attribute.String("version", version), attribute.String("go_version", runtime.Version())),
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.observe(o, g)
		return nil
	}, g.held, g.waiting, g.inFlight, g.build, g.revision, g.replicas, g.depth, g.oldestWait, g.feedLag)
	return errors.Join(append(errs, err)...)
}

// observe reports the gauges. Those that nobody has told yet are left out: a
// zero would say that nobody waits.
func (m *Metrics) observe(o metric.Observer, g gauges) {
	o.ObserveInt64(g.build, 1, g.buildInfo)
	o.ObserveInt64(g.inFlight, m.inFlight.Load())
	if said := m.feed.Load(); said != nil {
		o.ObserveFloat64(g.feedLag, (said.lag + time.Since(said.at)).Seconds())
	}
	if read := m.replicas.Load(); read != nil {
		if live, known := (*read)(); known {
			o.ObserveInt64(g.replicas, int64(live))
		}
	}
	if read := m.queues.Load(); read != nil {
		if queues, known := (*read)(); known {
			queues.observe(o, g)
		}
	}
}

func (q Queues) observe(o metric.Observer, g gauges) {
	o.ObserveFloat64(g.oldestWait, q.OldestWait.Seconds())
	o.ObserveInt64(g.revision, int64(q.Revision))
	o.ObserveInt64(g.depth, int64(q.Deepest))
	for mode, counts := range q.ByMode {
		attributes := metric.WithAttributes(attribute.String("mode", mode))
		o.ObserveInt64(g.held, int64(counts.Held), attributes)
		o.ObserveInt64(g.waiting, int64(counts.Waiting), attributes)
	}
}
