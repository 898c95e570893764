package telemetry

import (
	"context"
	"errors"
	"runtime"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// figure is a number that is read when it is collected.
type figure struct {
	name, unit, description string
	counts                  bool // it only grows
}

// report reports the value of a figure, by its index.
type report func(figure int, value float64, attributes ...attribute.KeyValue)

// observe adds figures that read reports at each collection, from any goroutine, until
// [Telemetry.Shutdown]. read must not block. A figure that it does not report is left out: a zero
// would say that no entry waits.
func (m *Metrics) observe(read func(report), figures ...figure) {
	var errs []error
	var all []metric.Observable
	var instruments []metric.Float64Observable
	for _, f := range figures {
		i, err := m.observable(f)
		errs, all, instruments = append(errs, err), append(all, i), append(instruments, i)
	}
	_, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		read(func(i int, value float64, attributes ...attribute.KeyValue) {
			o.ObserveFloat64(instruments[i], value, metric.WithAttributes(attributes...))
		})
		return nil
	}, all...)
	if err := errors.Join(append(errs, err)...); err != nil {
		otel.Handle(err) // a name that the SDK does not take: a test would have found it
	}
}

func (m *Metrics) observable(f figure) (metric.Float64Observable, error) {
	unit, description := metric.WithUnit(f.unit), metric.WithDescription(f.description)
	if f.counts {
		return m.meter.Float64ObservableCounter(f.name, unit, description)
	}
	return m.meter.Float64ObservableGauge(f.name, unit, description)
}

// bit is 1 for true.
func bit(so bool) float64 {
	if so {
		return 1
	}
	return 0
}

// observeProcess adds what this package knows itself.
func (m *Metrics) observeProcess(version string) {
	build := []attribute.KeyValue{
		attribute.String("version", version), attribute.String("go_version", runtime.Version()),
	}
	m.observe(func(to report) {
		to(0, 1, build...)
		to(1, float64(m.inFlight.Load()))
		if said := m.feed.Load(); said != nil {
			to(2, (said.lag + time.Since(said.at)).Seconds())
		}
	},
		figure{
			name: "fencepost.build.info", description: "Always 1; the attributes say what is running.",
		},
		figure{
			name: "fencepost.http.requests.in_flight", unit: "{request}",
			description: "Requests that are not answered yet.",
		},
		figure{
			name: "fencepost.feed.lag", unit: "s",
			description: "How far this replica's view may be behind the store.",
		},
	)
}

// feedLag is what the feed last said of itself.
type feedLag struct {
	lag time.Duration
	at  time.Time
}

// FeedLag says how far this replica's view is behind the store at this moment.
// The gauge adds the time since the last call: a feed that falls silent is a
// feed that falls behind.
func (m *Metrics) FeedLag(lag time.Duration) { m.feed.Store(&feedLag{lag, time.Now()}) }

// observeLog adds the lines that were lost.
func (m *Metrics) observeLog(lines *LineWriter) {
	m.observe(func(to report) { to(0, float64(lines.Dropped())) },
		figure{
			name: "fencepost.log.dropped", unit: "{line}", counts: true,
			description: "Lines of the log that its reader did not take in time.",
		})
}

// Queues are the queues of all tenants at one moment, as this replica sees them.
type Queues struct {
	ByMode     map[string]QueueCounts // "exclusive", "shared", "semaphore"
	OldestWait time.Duration          // of the waiter that has waited longest; 0 without waiters
	Deepest    int                    // most waiters for one lock
	Revision   uint64                 // of the store, as this replica knows it: no fence is above it
}

// QueueCounts are the entries of one mode.
type QueueCounts struct{ Held, Waiting int }

// ObserveQueues names the source of the figures of the queues. While it does not know them, their
// gauges are left out. Like the source of every Observe method it is called at each collection,
// from any goroutine, until [Telemetry.Shutdown], and must not block.
func (m *Metrics) ObserveQueues(read func() (q Queues, known bool)) {
	m.observe(func(to report) {
		q, known := read()
		if !known {
			return
		}
		for mode, n := range q.ByMode {
			to(0, float64(n.Held), attribute.String("mode", mode))
			to(1, float64(n.Waiting), attribute.String("mode", mode))
		}
		to(2, q.OldestWait.Seconds())
		to(3, float64(q.Deepest))
		to(4, float64(q.Revision))
	},
		figure{name: "fencepost.lock.held", unit: "{entry}", description: "Entries that hold."},
		figure{name: "fencepost.lock.waiting", unit: "{entry}", description: "Entries that wait."},
		figure{
			name: "fencepost.lock.oldest_wait", unit: "s",
			description: "How long the longest waiting entry has waited.",
		},
		figure{
			name: "fencepost.queue.depth.max", unit: "{entry}", description: "Most waiters for one lock.",
		},
		figure{
			name:        "fencepost.store.revision",
			description: "Revision of the store that this replica has seen; no fence is above it.",
		},
	)
}

// Counts are counted exactly where they happen, since the process started.
type Counts struct {
	// Entries that the store removed because no client renewed them: holders and waiters.
	HoldersExpired, WaitersExpired uint64

	Contradictions uint64 // rings of orders in which locks are taken
	EventsDropped  uint64 // that the log and the figures did not take in time
}

// ObserveCounts names the source of these counts.
func (m *Metrics) ObserveCounts(read func() Counts) {
	m.observe(func(to report) {
		now := read()
		to(0, float64(now.HoldersExpired), attribute.String("reason", "holder_gone"))
		to(0, float64(now.WaitersExpired), attribute.String("reason", "waiter_gone"))
		to(1, float64(now.Contradictions))
		to(2, float64(now.EventsDropped))
	},
		figure{
			name: "fencepost.lock.expirations", unit: "{entry}", counts: true,
			description: "Entries that the store removed because no client renewed them.",
		},
		figure{
			name: "fencepost.lock.order_contradictions", unit: "{ring}", counts: true,
			description: "Orders in which locks are taken that were found to contradict each other.",
		},
		figure{
			name: "fencepost.events.dropped", unit: "{event}", counts: true,
			description: "Events that came faster than the log and the figures took them.",
		},
	)
}

// ObserveReplicas names the source of the number of replicas that serve the store.
func (m *Metrics) ObserveReplicas(read func() (live int, known bool)) {
	m.observe(func(to report) {
		if live, known := read(); known {
			to(0, float64(live))
		}
	}, figure{
		name: "fencepost.replicas", unit: "{replica}",
		description: "Replicas that serve the store, this one included, as it has listed them last.",
	})
}

// Why nothing is granted, in fencepost_grants_refused.
const (
	RefusedLostPast     = "lost_past"
	RefusedNewerVersion = "newer_version"
)

// ObserveRefusal names the source of why nothing is granted, one of the reasons above or "".
func (m *Metrics) ObserveRefusal(read func() (reason string)) {
	m.observe(func(to report) {
		now := read()
		// A 0 for the others: an alert wants to see it end.
		for _, reason := range []string{RefusedLostPast, RefusedNewerVersion} {
			to(0, bit(reason == now), attribute.String("reason", reason))
		}
	}, figure{
		name: "fencepost.grants.refused", description: "1 while nothing is granted for this reason.",
	})
}

// ObserveStoreSize names the source of how full the store inside the process is, in bytes. A
// cluster reports its own size.
func (m *Metrics) ObserveStoreSize(read func() (used, quota int64)) {
	m.observe(func(to report) {
		used, quota := read()
		to(0, float64(used))
		to(1, float64(quota))
	},
		figure{
			name: "fencepost.store.used", unit: "By",
			description: "What is in use of the embedded store's file.",
		},
		figure{
			name: "fencepost.store.quota", unit: "By",
			description: "What the embedded store's file may have.",
		},
	)
}

// Secured is the state of the server's TLS.
type Secured struct {
	Expires time.Time // of the certificate in use
	Refused bool      // the server cannot use what the files of certificates have now
}

// ObserveTLS names the source of the figures of TLS.
func (m *Metrics) ObserveTLS(read func() Secured) {
	m.observe(func(to report) {
		now := read()
		to(0, float64(now.Expires.Unix()))
		to(1, bit(now.Refused))
	},
		figure{
			name: "fencepost.tls.certificate.expiry", unit: "s",
			description: "When the certificate that clients see ends, in seconds since 1970.",
		},
		figure{
			name:        "fencepost.tls.files.refused",
			description: "1 while the server cannot use what a file of certificates has.",
		},
	)
}

// The files of principals, in fencepost_principals_refused.
const (
	FilePrincipals     = "principals"      // principals of client certificates
	FileOIDCPrincipals = "oidc_principals" // what the identity provider's claims allow
)

// ObservePrincipals reports for each principals file whether the server rejects it. It leaves out
// files that the server does not read.
func (m *Metrics) ObservePrincipals(read func() (refused map[string]bool)) {
	m.observe(func(to report) {
		now := read()
		for _, file := range []string{FilePrincipals, FileOIDCPrincipals} {
			if refused, reads := now[file]; reads {
				to(0, bit(refused), attribute.String("file", file))
			}
		}
	}, figure{
		name:        "fencepost.principals.refused",
		description: "1 while the server cannot use what a file of principals has.",
	})
}

// Webhooks is what this replica has to deliver.
type Webhooks struct {
	Backlog int           // deliveries that are pending, to receivers that are sent something now
	Oldest  time.Duration // since when the oldest of them is due that does not wait for its receiver
	Lag     time.Duration // since the first event that is neither delivered nor kept
}

// ObserveWebhooks names the source of these figures.
func (m *Metrics) ObserveWebhooks(read func() Webhooks) {
	m.observe(func(to report) {
		now := read()
		to(0, float64(now.Backlog))
		to(1, now.Oldest.Seconds())
		to(2, now.Lag.Seconds())
	},
		figure{
			name: "fencepost.webhook.backlog", unit: "{delivery}",
			description: "Pending deliveries of this replica's share, without paused or disabled receivers.",
		},
		figure{
			name: "fencepost.webhook.oldest.age", unit: "s",
			description: "For how long the oldest of them is due that does not wait for its receiver.",
		},
		figure{
			name: "fencepost.webhook.lag", unit: "s",
			description: "Age of the first event that is neither delivered nor kept for a retry.",
		},
	)
}
