package engine

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// Removal is a store's part in one call of [store.Store].Remove: single attempts to remove one
// entry.
type Removal interface {
	// Try makes an attempt. The error is [ErrGone] if the entry does not exist, and [lock.Changed] if
	// it does, but an entry that the removal was decided by does not. Then, and with
	// [batch.ErrNotSent] and any *lock.Error, nothing was or will be removed. After any other error
	// that is unknown.
	Try(ctx context.Context) error

	// Did reports of an entry that is gone whether one of the attempts has removed it. In doubt it
	// returns true.
	Did(ctx context.Context) (bool, error)
}

// ErrGone means that an entry does not exist.
var ErrGone = errors.New("the entry is not in the queue")

// ErrNarrowed means that an entry was narrowed since the caller saw it.
var ErrNarrowed = errors.New("the entry has left some of its queues")

// Remove removes an entry by attempts at it, as [store.Store].Remove requires.
func Remove(ctx context.Context, timeout time.Duration, r Removal) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := repeat(ctx, "remove", r.Try)
	if errors.Is(err, ErrGone) {
		return removedBefore(ctx, r)
	}
	return err
}

// Narrow narrows an entry by attempts at it, as [store.Store].Narrow requires. try makes one, and
// returns the entry as it is then. Its errors are those of [Removal].
func Narrow(
	ctx context.Context, timeout time.Duration, try func(context.Context) (*lock.Entry, error),
) (now *lock.Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = repeat(ctx, "narrow", func(ctx context.Context) (err error) {
		now, err = try(ctx)
		return err
	})
	if errors.Is(err, ErrGone) {
		err = store.Lost(ErrGone.Error())
	}
	return now, err
}

// repeat repeats attempts until one has an outcome, or ctx ends.
func repeat(ctx context.Context, doing string, try func(context.Context) error) error {
	for unknown := false; ; {
		err, final := try(ctx), (*lock.Error)(nil)
		switch {
		case err == nil, errors.Is(err, ErrGone):
			return err
		case errors.As(err, &final):
			final.OutcomeUnknown = final.OutcomeUnknown || unknown
			return final
		}
		unknown = unknown || !errors.Is(err, batch.ErrNotSent)
		if store.Pause(ctx, joinPause) != nil {
			return store.Unavailable(err, doing, unknown)
		}
	}
}

// removedBefore reports whether an earlier attempt of this call removed the entry, or it was gone
// before.
func removedBefore(ctx context.Context, r Removal) error {
	switch did, err := r.Did(ctx); {
	case err != nil:
		return store.Unavailable(err, "confirm removal", true)
	case did:
		return nil
	}
	return store.Lost(ErrGone.Error())
}
