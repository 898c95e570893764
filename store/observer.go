package store

import (
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Observer receives what a store does, for metrics. Nil fields are not called.
type Observer struct {
	Operation func(name string, took time.Duration, err error)
	Batch     func(writes int)

	// Sending receives the spans of the requests that share a write, before it is sent; sent is
	// called at its end. It is not called if no request has a span.
	Sending func(requests []trace.SpanContext) (sent func())

	Restarted func() // the feed lists again

	// FeedLag receives how far the feed lags. It is called while the feed is up; a reader of the lag
	// adds the time since the last call.
	FeedLag func(time.Duration)
}

// OrSilent returns the observer with every field set, so that an adapter can call all of them.
func (o Observer) OrSilent() Observer {
	if o.Operation == nil {
		o.Operation = func(string, time.Duration, error) {}
	}
	if o.Batch == nil {
		o.Batch = func(int) {}
	}
	if o.FeedLag == nil {
		o.FeedLag = func(time.Duration) {}
	}
	if o.Restarted == nil {
		o.Restarted = func() {}
	}
	return o
}
