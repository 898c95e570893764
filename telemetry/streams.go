package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// streams are the figures of streams of events.
type streams struct {
	clients     metric.Int64UpDownCounter
	dropped     metric.Int64Counter
	established metric.Float64Histogram
}

func (m *Metrics) makeStreams(meter metric.Meter) error {
	var errs [3]error
	s := &m.streams
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
func (m *Metrics) StreamOpened(ctx context.Context, d time.Duration) {
	m.streams.clients.Add(ctx, 1)
	m.streams.established.Record(ctx, d.Seconds())
}

// StreamClosed counts a stream that has ended; dropped says that its client took nothing.
func (m *Metrics) StreamClosed(ctx context.Context, dropped bool) {
	m.streams.clients.Add(ctx, -1)
	if dropped {
		m.streams.dropped.Add(ctx, 1)
	}
}
