package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// What streams tell.
const (
	StreamEvents = "events" // what happens to locks
	StreamView   = "view"   // what operators look at, as it changes
)

// streams are the figures of answers without an end.
type streams struct {
	clients     metric.Int64UpDownCounter
	dropped     metric.Int64Counter
	established metric.Float64Histogram
	kinds       *sets[string]
}

func (m *Metrics) makeStreams(meter metric.Meter) error {
	var errs [3]error
	s := &m.streams
	s.kinds = newClosedSets(word("kind"), Other, StreamEvents, StreamView)
	s.clients, errs[0] = meter.Int64UpDownCounter("fencepost.stream.clients", metric.WithUnit("{client}"),
		metric.WithDescription("Streams that are open."))
	s.dropped, errs[1] = meter.Int64Counter("fencepost.stream.dropped", metric.WithUnit("{client}"),
		metric.WithDescription("Streams that were ended because their clients took nothing."))
	s.established, errs[2] = meter.Float64Histogram("fencepost.stream.establish.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the request to the begin of a stream."), metric.WithExplicitBucketBoundaries(requestBuckets()...))
	return errors.Join(errs[:]...)
}

// StreamOpened counts a stream that begins, so long after it was asked for.
// [Metrics.StreamClosed] must follow.
func (m *Metrics) StreamOpened(ctx context.Context, kind string, d time.Duration) {
	of := m.streams.kinds.of(kind)
	m.streams.clients.Add(ctx, 1, of.add...)
	m.streams.established.Record(ctx, d.Seconds(), of.record...)
}

// StreamClosed counts a stream that has ended; dropped says that its client took nothing.
func (m *Metrics) StreamClosed(ctx context.Context, kind string, dropped bool) {
	of := m.streams.kinds.of(kind)
	m.streams.clients.Add(ctx, -1, of.add...)
	if dropped {
		m.streams.dropped.Add(ctx, 1, of.add...)
	}
}
