// Package adapter is what the adapters of all stores have in common: what they
// tell of themselves, and the errors that the service expects of them.
package adapter

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
)

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

const retryAfter = time.Second

// Unavailable says that the store could not be asked to do what it is doing, and
// why. ambiguous says that one of the attempts may have happened, whatever became
// of the last one.
func Unavailable(err error, doing string, ambiguous bool) *lock.Error {
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: "the store did not answer in time", RetryAfter: retryAfter,
		Ambiguous: ambiguous, Cause: &operationError{doing, err},
	}
}

type operationError struct {
	doing string
	cause error
}

func (e *operationError) Error() string { return e.doing + ": " + e.cause.Error() }
func (e *operationError) Unwrap() error { return e.cause }

// Lost says that an entry is not in the store.
func Lost(detail string) *lock.Error { return &lock.Error{Code: lock.Lost, Detail: detail} }

// Pause waits before the next attempt of an operation, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
