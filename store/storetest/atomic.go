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
func (t *trial) lookTwice(one, other store.Store, name, between string, seen *atomic.Int64) (ok bool) {
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
// Whoever holds in the end leaves, again and again: nobody may be left.
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

// cutSets cuts the client while it writes and removes sets. What is unclear has
// happened as a whole or not at all, and a repetition settles it.
func cutSets(t *trial, how Fault) {
	feed := t.follow(t.A)
	names := []string{"a", "b", "c"}
	var enqueues, removals outcomes
	var cycles atomic.Int32
	warm, restore := make(chan struct{}), make(chan func(), 1)
	go func() {
		<-warm
		restore <- t.CutB(t.T, how)
	}()
	together(4, func(int) {
		for t.interruptedSet(names, &enqueues, &removals) == nil {
			if cycles.Add(1) == 20 {
				close(warm)
			}
		}
	})
	if cycles.Load() < 20 {
		t.Fatal("the client stopped before it was cut off")
	}
	(<-restore)()
	t.eventually(t.recovery(), "the client works again", func() bool {
		_, err := t.B.Newest(t.ctx)
		return err == nil
	})
	t.wantWhole(names)
	for i, e := range enqueues.unknown {
		t.enqueue(t.client(i), e)
	}
	t.wantWhole(names)
	for i, e := range removals.unknown {
		if err := t.client(i).Remove(t.ctx, e, lock.Released); err != nil {
			t.wantLost("Remove repeated", err)
		}
	}
	t.wantWhole(names)
	t.wantIn(names, append(enqueues.done, enqueues.unknown...), removals.certain)
	t.wantSame(feed)
}

// interruptedSet enqueues one set and removes another through client B.
func (t *trial) interruptedSet(names []string, enqueues, removals *outcomes) error {
	draft := t.repeatable(names...)
	_, _, err := t.B.Enqueue(t.ctx, clone(draft))
	enqueues.add(t, "Enqueue", draft, err)
	if err != nil {
		return err
	}
	e, _, err := t.A.Enqueue(t.ctx, t.draft(names...))
	if err != nil {
		t.Errorf("Enqueue by a client that was not cut off: %v", err)
		return err
	}
	err = t.B.Remove(t.ctx, e, lock.Released)
	removals.add(t, "Remove", e, err)
	return err
}

// wantWhole checks that all queues are the same. What a client gave up may still
// be on its way for a moment.
func (t *trial) wantWhole(names []string) {
	t.Helper()
	if !poll(t.Late, func() bool {
		first := t.queue(t.A, t.ref(names[0]))
		return !slices.ContainsFunc(names[1:], func(name string) bool { return diff(first, t.queue(t.A, t.ref(name))) != "" })
	}) {
		t.Error("sets of the same locks are in one queue and not in another")
	}
}

// wantIn checks that these entries, and no others, are in the queues.
func (t *trial) wantIn(names []string, some ...[]*lock.Entry) {
	t.Helper()
	want := map[lock.ID]bool{}
	for _, e := range slices.Concat(some...) {
		want[e.ID] = true
	}
	for _, name := range names {
		got := t.queue(t.B, t.ref(name))
		for _, e := range got {
			if !want[e.ID] {
				t.Errorf("%s has an entry that was removed, or never written", name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %d entries, want %d", name, len(got), len(want))
		}
	}
}
