package protocol

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Renew is the loop that users write for a library that does not renew by itself: it calls extend
// every third of the TTL. The channel is closed when extend returns ErrLost, or when a TTL has
// passed without a success. Stop ends the loop and waits for it.
func Renew(ttl time.Duration, extend func(context.Context) error) (<-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	lost, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if renew(ctx, ttl, extend) {
			close(lost)
		}
	}()
	return lost, sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

func renew(ctx context.Context, ttl time.Duration, extend func(context.Context) error) bool {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	for until := time.Now().Add(ttl); ; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		sent := time.Now()
		attempt, cancel := context.WithTimeout(ctx, ttl/3)
		err := extend(attempt)
		cancel()
		switch {
		case err == nil:
			until = sent.Add(ttl)
		case errors.Is(err, ErrLost) || time.Now().After(until):
			return true
		}
	}
}
