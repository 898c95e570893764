package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Bucket boundaries, in seconds. Those of hand-overs are fine where hand-overs are: a grant takes
// as long as an answer, or as a call of the store. Those of requests are OpenTelemetry's
// http.server.request.duration, finer below 5 ms, with the longest wait at the end.
func makeBuckets() (wait, handover, store, request, webhook []float64) {
	return []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		[]float64{
			.0005, .001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30, 60,
		},
		[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30}
}

func (m *Metrics) makeHistograms() error {
	var errs []error
	histogram := func(unit, name, description string, buckets []float64) metric.Float64Histogram {
		h, err := m.meter.Float64Histogram(name, metric.WithDescription(description),
			metric.WithUnit(unit), metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	sizes := func(unit, name, description string, buckets ...float64) metric.Int64Histogram {
		h, err := m.meter.Int64Histogram(name, metric.WithDescription(description),
			metric.WithUnit(unit), metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	wait, handover, store, request, webhook := makeBuckets()
	m.wait = histogram("s", "fencepost.lock.wait.duration",
		"Time from the arrival of an acquire to its end.", wait)
	m.hold = histogram("s", "fencepost.lock.hold.duration",
		"Time from a grant to the end of the hold.", append(wait, 86400))
	m.handover = histogram("s", "fencepost.lock.handover.duration",
		"Time from when this replica saw the grant of a waiting entry to its answer.", handover)
	m.staleAge = histogram("s", "fencepost.lock.stale_write.age",
		"Time from the end of a hold to the report of its stale write.", wait)
	m.slack = histogram("1", "fencepost.lease.renew.slack",
		"Share of the TTL that was left at a renewal, of at most ten renewals a second.",
		[]float64{0, .05, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1})
	m.store = histogram("s", "fencepost.store.operation.duration",
		"Time that one call to the store took.", store)
	m.request = histogram("s", "fencepost.http.request.duration",
		"Time from a request to its answer.", request)
	m.stream = histogram("s", "fencepost.stream.establish.duration",
		"Time from the request to the begin of a stream.", request)
	m.webhook = histogram("s", "fencepost.webhook.duration",
		"Time that an attempt to deliver a webhook took.", webhook)
	m.keys = sizes("{lock}", "fencepost.lock.acquire.keys",
		"Locks that one acquire asked for.", 1, 2, 4, 8, 16, 32)
	m.batch = sizes("{request}", "fencepost.store.batch.size",
		"Requests that shared one write to the store.", 1, 2, 4, 8, 16, 32, 64, 128, 256)
	return errors.Join(errs...)
}

func (m *Metrics) makeCounters() error {
	var errs []error
	counter := func(unit, name, description string) metric.Int64Counter {
		c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m.renewals = counter("{renewal}", "fencepost.lock.renewals", "Attempts to renew.")
	m.revoked = counter("{entry}", "fencepost.lock.revocations", "Entries that operators ended.")
	m.staleWrites = counter("{write}", "fencepost.lock.stale_writes",
		"Writes that resources rejected because of their old fence, and reported.")
	m.refusals = counter("{request}", "fencepost.quota.refusals",
		"Requests that were refused because a tenant has used up a quota.")
	m.deadlocks = counter("{cycle}", "fencepost.lock.deadlocks", "Cycles of waits that were refused.")
	m.feedRestarts = counter("{restart}", "fencepost.feed.restarts",
		"Times that the feed of the store began again with a full view.")
	m.streamsDropped = counter("{client}", "fencepost.stream.dropped",
		"Streams that were ended because their clients took nothing.")
	m.webhookDeliveries = counter("{attempt}", "fencepost.webhook.attempts",
		"Attempts to deliver a webhook.")
	var err error
	m.streams, err = m.meter.Int64UpDownCounter("fencepost.stream.clients",
		metric.WithUnit("{client}"), metric.WithDescription("Streams that are open."))
	return errors.Join(append(errs, err)...)
}
