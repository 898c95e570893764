package storetest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// setsAtomic writes and removes sets through both clients while both go on
// reading, and looks for a set that is in one of its queues and not in another.
func setsAtomic(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	const enough = 10 // sets that a reader met
	names := []string{"a", "b", "c"}
	seen, stop := t.inspect(names)
	together(6, func(worker int) {
		for i := 0; i < 25 || seen.Load() < enough && t.ctx.Err() == nil && !t.Failed(); i++ {
			e, _, err := t.client(worker).Enqueue(t.ctx, t.draft(names...))
			if err != nil {
				t.Errorf("Enqueue: %v", err)
				return
			}
			t.wantPlaces(t.client(worker+1), e, true)
			if err := t.client(worker+i).Remove(t.ctx, e, reasons()[i%3]); err != nil {
				t.Errorf("Remove: %v", err)
				return
			}
			t.wantPlaces(t.client(worker+1), e, false)
		}
	})
	stop()
	t.wantSame(feeds...)
}

// wantPlaces checks that the set is in all of its queues, or in none.
func (t *trial) wantPlaces(s store.Store, e *lock.Entry, there bool) {
	t.Helper()
	for _, c := range e.Claims {
		queue, _, err := s.Queue(t.ctx, t.ref(c.Name))
		if err != nil || lock.Place(queue, e.ID) >= 0 != there {
			t.Errorf("a set is in the queue of %s: %t, want %t; %v", c.Name, !there, there, err)
		}
	}
}

// inspect reads two queues in turn until stop, and reports sets that are in the
// first before and after they were not in the second. seen counts those that were
// looked at.
func (t *trial) inspect(names []string) (seen *atomic.Int64, stop func()) {
	seen = &atomic.Int64{}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				two := pick(names, 2)
				if !t.lookTwice(t.client(i), t.client(i+n), two[0], two[1], seen) {
					return
				}
			}
		})
	}
	return seen, func() {
		close(done)
		readers.Wait()
	}
}

// lookTwice reads one queue before and after another one.
func (t *trial) lookTwice(
	one, other store.Store,
	name, between string,
	seen *atomic.Int64,
) (ok bool) {
	var reads [3][]*lock.Entry
	for i, read := range []struct {
		s    store.Store
		name string
	}{{one, name}, {other, between}, {one, name}} {
		entries, _, err := read.s.Queue(t.ctx, t.ref(read.name))
		if err != nil {
			t.Errorf("Queue: %v", err)
			return false
		}
		reads[i] = entries
	}
	for _, e := range reads[0] {
		wants := slices.ContainsFunc(e.Claims, func(c lock.Claim) bool { return c.Name == between })
		if !wants || lock.Place(reads[2], e.ID) < 0 {
			continue // it is no matter of the other queue, or went meanwhile
		}
		seen.Add(1)
		i := lock.Place(reads[1], e.ID)
		if i < 0 {
			t.Errorf("a set is in the queue of %s, before and after it was not in that of %s", name, between)
			return false
		}
		if diff := diff(e, reads[1][i]); diff != "" {
			t.Errorf("a set differs from queue to queue (-%s +%s):\n%s", name, between, diff)
			return false
		}
	}
	return true
}

// setsCrossing writes overlapping sets at the same moments through both clients.
// Each holder in the end leaves, again and again: no entry may be left.
func setsCrossing(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	combinations := [][]string{{"a", "b"}, {"b", "c"}, {"c", "a"}, {"a", "b", "c"}}
	j := t.enqueueMany(8, 6, func(worker int) *lock.Entry {
		e := t.draft(combinations[(worker+rand.IntN(2))%len(combinations)]...)
		if worker%3 == 0 {
			e.Claims[rand.IntN(len(e.Claims))].Mode = lock.Shared
		}
		return e
	})
	t.wantSame(feeds...)
	queues := map[string][]*lock.Entry{}
	for _, name := range []string{"a", "b", "c"} {
		queues[name] = t.queue(t.A, t.ref(name))
	}
	for left := len(j.all); left > 0; {
		gone := holdersOf(queues)
		if len(gone) == 0 {
			t.Fatalf("%d sets wait for each other", left)
		}
		for _, e := range gone {
			for name := range queues {
				queues[name] = slices.DeleteFunc(queues[name], func(o *lock.Entry) bool { return o.ID == e.ID })
			}
		}
		left -= len(gone)
	}
}

// holdersOf returns the entries that are in the front of all their queues.
func holdersOf(queues map[string][]*lock.Entry) []*lock.Entry {
	fronts, all := map[lock.ID]int{}, []*lock.Entry{}
	for name, queue := range queues {
		for _, e := range queue[:lock.Front(lock.ClaimsOn(queue, name))] {
			if fronts[e.ID]++; fronts[e.ID] == len(e.Claims) {
				all = append(all, e)
			}
		}
	}
	return all
}

// expirySets lets a set expire on which others wait in every queue. It goes from
// all of them at once, and the feeds tell of it once.
func expirySets(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	names := []string{"a", "b", "c", "d"}
	set := t.lease(t.draft(names...), t.MinTTL)
	var heirs []*lock.Entry
	for i, name := range names {
		heirs = append(heirs, t.enqueue(t.client(i), t.draft(name)))
	}
	_, stop := t.inspect(names)
	defer stop()
	for _, f := range feeds {
		t.wantExpiry(f, set)
	}
	t.settle(feeds...)
	for i, name := range names {
		t.wantQueue(t.client(i), t.ref(name), heirs[i])
		for _, f := range feeds {
			if !f.holds(t.Late, heirs[i].ID) {
				t.Errorf("who waited for %s does not hold", name)
			}
		}
	}
	for i := range 2 {
		t.wantLost("Renew of an expired set", t.client(i).Renew(t.ctx, set.Entry))
		t.wantLost("Remove of an expired set", t.client(i).Remove(t.ctx, set.Entry, lock.Revoked))
	}
}
