package store

import (
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Observer is told what a store does, for metrics. Nil fields are not called.
type Observer struct {
	Operation func(name string, took time.Duration, err error)
	Batch     func(writes int)

	// Sending is told the spans of the requests that share a write, before it is sent; sent
	// is called when that has ended. It is not called while none of them has one.
	Sending func(requests []trace.SpanContext) (sent func())

	Restarted func() // the feed lists again

	// FeedLag is told how far the feed is behind. It is called while the feed is
	// up: whoever shows the lag adds the time since the last call.
	FeedLag func(time.Duration)
}

// OrSilent returns the observer with every field set, so that an adapter can call
// them all.
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
