package store

import (
	"context"
	"time"
)

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

// Await waits until changed, for d at most, or until ctx ends.
func Await(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
	}
}

// Pauses between a feed's attempts to restart, and how long it must have run for the first pause
// to apply again.
const (
	firstRestart   = 50 * time.Millisecond
	longestRestart = time.Second
	soundRun       = 10 * time.Second
)

// Restart runs follow repeatedly until ctx ends. The first restart comes after a short pause;
// quick failures make the pauses longer. interrupted receives why follow ended, before the pause.
func Restart(ctx context.Context, follow func(context.Context) error, interrupted func(error)) {
	wait := firstRestart
	for ctx.Err() == nil {
		start := time.Now()
		err := follow(ctx)
		if ctx.Err() != nil {
			return
		}
		interrupted(err)
		if time.Since(start) > soundRun {
			wait = firstRestart
		}
		if Pause(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, longestRestart)
	}
}
