package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
)

// TestTryFindsItsWaitingEntry: the entry of a try waits, because its replica died
// before it could take it back. The repeated try does not wait with it.
func TestTryFindsItsWaitingEntry(t *testing.T) {
	for name, f := range map[string]feed{"Seen": running, "Unseen": frozen} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t)
				a, b := s.replica(t), s.replica(t)
				a.store.on(silent, remove)
				a.store.setFeed(frozen)
				b.store.setFeed(f)
				holder := s.occupy(t, "orders:1").ID
				dead := a.start(keyed("orders:1", 0, "k"))
				after(300 * time.Millisecond)
				if len(s.ids()) != 2 {
					t.Fatalf("no entry was left behind: %v", s.ids())
				}
				began := time.Now()
				b.start(keyed("orders:1", 0, "k")).fails(lock.Held)
				if d := time.Since(began); d > time.Second {
					t.Errorf("a try took %v", d)
				}
				if diff := cmp.Diff([]lock.ID{holder}, s.ids()); diff != "" {
					t.Errorf("left behind (-want +got):\n%s", diff)
				}
				dead.fails(lock.Held)
			})
		})
	}
}
