package service_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestNewerVersion: a newer version changes the form of the store. A replica reports that, sends
// its waiters on with their positions, and removes nothing because of entries that it may misread.
// A client can still renew and release its entry.
func TestNewerVersion(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		holder := r.hold(lasting(want("orders:1", 0)))
		waiter := r.line(lasting(want("orders:1", time.Hour)))
		if err := r.Ready(t.Context()); err != nil {
			t.Fatalf("not ready: %v", err)
		}
		kept, _, err := s.insert(&lock.Entry{
			ID: "kept", Tenant: "acme", Holder: "somebody", TTL: time.Hour, Async: true,
			EnqueuedAt: time.Now(),
			Claims:     []lock.Claim{{Name: "orders:2", Mode: lock.Semaphore, Limit: 1, Permits: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.SetForm(store.Form + 1)
		synctest.Wait()
		if err := r.Ready(t.Context()); !errors.Is(err, store.ErrNewerForm) {
			t.Errorf("ready: %v", err)
		}
		if told := waiter.fails(lock.StoreUnavailable); !errors.Is(&told, store.ErrNewerForm) ||
			!told.OutcomeUnknown {
			t.Errorf("the waiter is told %+v", told)
		}
		r.start(want("orders:3", 0)).fails(lock.StoreUnavailable)
		r.start(semaphore(1, lasting(want("orders:2", time.Hour)))).fails(lock.StoreUnavailable)
		r.renew(holder)
		r.release(holder)
		if n := len(s.ids()); n != 2 || !s.has(kept.ID) {
			t.Errorf("left in the store: %v", s.ids())
		}
		s.SetForm(store.Form)
		synctest.Wait()
		r.resume(waiter.grant, time.Minute).holds()
	})
}
