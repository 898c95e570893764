package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// feedNotices is how long a feed may take to say that the store is gone.
const feedNotices = 2500 * time.Millisecond

// TestLostStoreIsTold: when the store is gone, every waiter is told within 5 s,
// whenever it came, however long its lease is, and wherever it was in keeping it
// alive. What it is told is enough to resume.
func TestLostStoreIsTold(t *testing.T) {
	for _, f := range map[string]fault{"Silent": silent, "Broken": broken} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf(t)
			r := s.replica(t)
			s.occupy(t, "orders:1")
			var line []*pending
			for i := range 120 {
				req := want("orders:1", time.Hour)
				req.TTL = minTTL + time.Duration(i%30)*time.Second
				line = append(line, r.line(req))
				after(time.Duration(i%7) * 73 * time.Millisecond)
			}
			gone := time.Now()
			r.store.on(f, allMethods...)
			after(feedNotices)
			r.store.setFeed(lost)
			for i, p := range line {
				p.fails(lock.StoreUnavailable)
				if d := p.at.Sub(gone); d > 5*time.Second {
					t.Errorf("waiter %d was told %v after the store was gone", i, d)
				}
				if p.grant == nil || p.grant.Token == "" {
					t.Errorf("waiter %d cannot resume: %+v", i, p.grant)
				}
			}
		})
	}
}

// TestSharedReadOlderThanTheEntry: waiters of a lock share direct reads. One that
// began before an entry was written proves nothing about it.
func TestSharedReadOlderThanTheEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		r := s.replica(t)
		s.occupy(t, "orders:1")
		r.store.setFeed(frozen)
		r.store.on(late(600*time.Millisecond), queue)
		first := r.line(want("orders:1", 10*time.Second))
		after(300 * time.Millisecond) // by now it asks
		second := r.line(want("orders:1", 10*time.Second))
		after(9 * time.Second)
		first.waits()
		second.waits()
		if n := len(s.ids()); n != 3 {
			t.Errorf("%d entries", n)
		}
	})
}
