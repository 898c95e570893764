package service_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestKeysAreBounded: the server rejects a tenant with too many used idempotency keys before any
// write, until the oldest are dropped. It does not reject a retry, a request without a key, or
// another tenant.
func TestKeysAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.MaxKeys = 100 })
		stays := lasting(keyed("stays", 0, "stays"))
		r.hold(stays)
		for i := range 97 {
			r.release(r.hold(keyed("a", 0, fmt.Sprint("key-", i))))
			after(time.Second)
		}
		holder := r.hold(want("a", 0))
		if _, err := r.Acquire(t.Context(), keyed("a", 0, "tries")); !errors.Is(err, lock.Held) {
			t.Errorf("a try that needs no write: %v", err)
		}
		r.release(holder)
		r.release(r.hold(keyed("a", 0, "the last")))
		r.store.on(
			first(1, func(context.Context, func() error) error { return unavailable(true) }), enqueue,
		)
		if _, err := r.Acquire(t.Context(), keyed("a", 0, "may have been written")); !errors.Is(
			err, lock.StoreUnavailable,
		) {
			t.Errorf("without an answer: %v", err)
		}
		before := s.Number()
		_, err := r.Acquire(t.Context(), keyed("a", 0, "too many"))
		var e *lock.Error
		if !errors.As(err, &e) || e.Code != lock.RateLimited || e.RetryAfter == 0 || e.OutcomeUnknown {
			t.Errorf("one key more: %v", err)
		}
		if n := s.Number() - before; n != 0 {
			t.Errorf("%d writes for what was refused", n)
		}
		if g, err := r.Acquire(t.Context(), stays); err != nil || !g.Held {
			t.Errorf("a retry: %+v, %v", g, err)
		}
		r.release(r.hold(want("a", 0)))
		foreign := keyed("a", 0, "key")
		foreign.Tenant = "globex"
		r.hold(foreign)
		after(13 * time.Minute)
		r.release(r.hold(keyed("a", 0, "later")))
	})
}
