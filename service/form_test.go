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

// TestOlderReplica: a newer replica writes what an older one does not understand. The older one
// reports that, sends its waiters on with their positions, and removes nothing because of the
// unknown entry. A client can still renew and release its entry.
func TestOlderReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		newer, older := s.replica(t), s.replicaWith(t, newOlderClient(s, 1))
		holder := older.hold(lasting(want("orders:1", 0)))
		waiter := older.line(lasting(want("orders:1", time.Hour)))
		if err := older.Ready(t.Context()); err != nil {
			t.Fatalf("not ready: %v", err)
		}
		kept, _, err := s.insert(&lock.Entry{
			ID: "kept", Tenant: "acme", Holder: "somebody", TTL: time.Hour, Async: true,
			EnqueuedAt: time.Now(),
			Claims:     []lock.Claim{{Name: "orders:2", Mode: lock.Semaphore, Limit: 1}},
		})
		if synctest.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := older.Ready(t.Context()); !errors.Is(err, store.ErrNewerForm) {
			t.Errorf("ready: %v", err)
		}
		if told := waiter.fails(lock.StoreUnavailable); !errors.Is(
			&told, store.ErrNewerForm,
		) || !told.OutcomeUnknown {
			t.Errorf("the waiter is told %+v", told)
		}
		older.start(want("orders:3", 0)).fails(lock.StoreUnavailable)
		behind := semaphore(1, lasting(keyed("orders:2", time.Hour, "k")))
		line := newer.line(behind)
		older.start(behind).fails(lock.StoreUnavailable)
		line.waits()
		older.renew(holder)
		older.release(holder)
		newer.resume(waiter.grant, time.Minute).holds()
		if err := newer.Ready(t.Context()); err != nil {
			t.Errorf("the newer one is not ready: %v", err)
		}
		if n := len(s.ids()); n != 3 || !s.has(kept.ID) {
			t.Errorf("left in the store: %v", s.ids())
		}
	})
}
