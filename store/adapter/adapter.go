// Package adapter is what the adapters of all stores have in common: what they
// tell of themselves, and the errors that the service expects of them.
package adapter

import (
	"context"
	"fmt"
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

// MetaGone says that a store was used, but that what it remembers of itself at path
// is not there. Without the fence floor that stood there, fences could be handed out a
// second time.
func MetaGone(path string) error {
	return fmt.Errorf("%s was deleted, which nobody but us should do: a server that still runs puts it back within seconds, so try again; "+
		"if none runs, start one with --fence-floor set above every fence ever handed out, or to 1 if no floor was ever set", path)
}

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
