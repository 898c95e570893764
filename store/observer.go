package store

import "time"

// Observer is told what a store does, for metrics. Nil fields are not called.
type Observer struct {
	Operation func(name string, took time.Duration, err error)
	Batch     func(writes int)
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
