package valkeyrie

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kvtools/valkeyrie/store"

	"github.com/fencepost/fencepost/client"
)

// longest is how long the server lets a request wait.
const longest = 24 * time.Hour

// Lock is one lock of a [Store]. It is not reentrant.
type Lock struct {
	client  *client.Client
	name    string
	options client.Options
	stop    chan struct{}

	held atomic.Pointer[client.Held]
}

// Held returns the lock, with its fence, or nil if it was not acquired.
func (l *Lock) Held() *client.Held { return l.held.Load() }

// Lock waits for the lock until ctx ends, at most for a day. The client renews it until Unlock, or
// until LockOptions.RenewLock is closed, which releases it. The channel is closed when the lock is
// lost or released.
func (l *Lock) Lock(ctx context.Context) (<-chan struct{}, error) {
	term, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unless := context.AfterFunc(ctx, cancel)
	held, err := l.client.Lock(term, l.name, l.options)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%w: %w", store.ErrCannotLock, err)
	}
	if !unless() {
		_ = held.Release(context.WithoutCancel(ctx)) // logged
		return nil, fmt.Errorf("%w: %w", store.ErrCannotLock, context.Cause(ctx))
	}
	l.held.Store(held)
	if l.stop != nil {
		go l.releaseAtStop(held)
	}
	return held.Context().Done(), nil
}

// releaseAtStop ends with the lock.
func (l *Lock) releaseAtStop(held *client.Held) {
	select {
	case <-l.stop:
		_ = held.Release(context.Background()) // logged
	case <-held.Context().Done():
	}
}

// Unlock releases the lock. It returns a [client.LostError] if the lock was lost before.
func (l *Lock) Unlock(ctx context.Context) error {
	held := l.held.Swap(nil)
	if held == nil {
		return errors.New("the lock is not held")
	}
	return held.Release(context.WithoutCancel(ctx))
}
