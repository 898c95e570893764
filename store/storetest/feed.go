package storetest

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func feedCases() []testCase {
	return []testCase{
		{name: "feed/every change once and in order", run: feedComplete},
		{name: "feed/changes have the numbers of their writes", run: feedNumbers},
		{name: "feed/nothing is lost between the view and what follows", run: feedSeam},
		{name: "feed/more entries than fit a page", run: feedLarge, alone: true},
		{name: "feed/goes on over a compaction", run: feedCompacted, needs: compact},
	}
}

// workload enqueues, narrows and removes at random through the clients. It removes entries as they
// were.
func (t *trial) workload(client func(int) store.Store, workers, each int) {
	names := []string{"a", "b", "c", "d", "e"}
	together(workers, func(worker int) {
		var mine []*lock.Entry
		for i := range each {
			draft := t.draft(pick(names, 1+rand.IntN(3))...)
			if rand.IntN(3) == 0 {
				draft = t.pool(1, pick(names, 2+rand.IntN(2))...)
			}
			e, _, err := client(worker+i).Enqueue(t.ctx, draft)
			if err == nil && e.Choosing() && rand.IntN(2) == 0 {
				_, err = client(i).Narrow(t.ctx, e, e.Claims[:1])
			}
			if err != nil {
				t.Errorf("Enqueue or Narrow: %v", err)
				return
			}
			if mine = append(mine, e); rand.IntN(3) == 0 {
				continue
			}
			n := rand.IntN(len(mine))
			if err := client(i).Remove(t.ctx, mine[n], lock.Released); err != nil {
				t.Errorf("Remove: %v", err)
			}
			mine = append(mine[:n], mine[n+1:]...)
		}
	})
}

// wantSame compares the feeds with each other and with the queues that a client
// reads. Nothing else may be written meanwhile.
func (t *trial) wantSame(feeds ...*feed) {
	t.Helper()
	t.settle(feeds...)
	first := feeds[0].state().queues
	for _, f := range feeds[1:] {
		if diff := diff(first, f.state().queues); diff != "" {
			t.Errorf("two feeds differ (-first +other):\n%s", diff)
		}
	}
	for r := range first {
		if diff := diff(t.queue(t.B, r), feeds[0].state().entries(r)); diff != "" {
			t.Errorf("%v: the feed is not the queue (-queue +feed):\n%s", r, diff)
		}
	}
}

func feedComplete(t *trial) {
	there := t.enqueue(t.A, t.draft("before"))
	a, b := t.follow(t.A), t.follow(t.B)
	t.workload(t.client, 8, 40)
	t.wantSame(a, b)
	for _, f := range []*feed{a, b} {
		v := f.state()
		if v.resets != 1 || v.losses != 0 {
			t.Logf("the feed started over: %d Resets, %d times Lost", v.resets, v.losses)
		} else if len(v.joined) != 8*40+1 {
			t.Errorf("the feed told of %d entries, want %d", len(v.joined), 8*40+1)
		}
		if v.joined[there.ID] != 0 {
			t.Error("the feed told of an entry that its first view had")
		}
	}
}

// feedNumbers compares the changes of two feeds, with their numbers and order, while entries come
// and go so fast that several share a write. Every case checks that numbers do not fall and stay
// within what was reported.
func feedNumbers(t *trial) {
	a, b := t.follow(t.A), t.follow(t.B)
	for range 3 {
		t.rush()
	}
	t.settle(a, b)
	va, vb := a.state(), b.state()
	from := max(va.since, vb.since) // one of them may have listed again meanwhile
	if diff := diff(va.changesAfter(from), vb.changesAfter(from)); diff != "" {
		t.Errorf("two feeds tell different changes (-first +other):\n%s", diff)
	}
	if n := len(va.changesAfter(from)); va.whole() && vb.whole() && n != 3*2*rushSize+1 {
		t.Errorf("the feeds told %d changes, want %d", n, 3*2*rushSize+1)
	}
	numbers := map[uint64]int{}
	for _, c := range va.changes {
		numbers[c.Number]++
	}
	t.Logf("%d changes had %d numbers", len(va.changes), len(numbers))
}

const rushSize = 64

// rush has many entries of different locks come at once, and then go at once while
// others come.
func (t *trial) rush() {
	all := make([]*lock.Entry, rushSize)
	var going sync.WaitGroup
	together(rushSize, func(i int) {
		names := []string{fmt.Sprintf("rush-%d", i), fmt.Sprintf("rush-%d", (i+1)%rushSize)}
		e, _, err := t.client(i/2).Enqueue(t.ctx, t.draft(names[:1+i%2]...))
		if err != nil {
			t.Errorf("Enqueue: %v", err)
			return
		}
		all[i] = e
		if i%2 == 0 { // half of them leave while others still come
			going.Go(func() { t.leave(all[i]) })
		}
	})
	going.Wait()
	together(rushSize, func(i int) {
		if i%2 == 1 && all[i] != nil {
			t.leave(all[i])
		}
	})
}

func (t *trial) leave(e *lock.Entry) {
	if err := t.A.Remove(t.ctx, e, lock.Released); err != nil {
		t.Errorf("Remove: %v", err)
	}
}

// feedSeam starts followers again and again while entries come and go.
func feedSeam(t *trial) {
	early := t.follow(t.A)
	var stop atomic.Bool
	var writers sync.WaitGroup
	writers.Go(func() {
		for !stop.Load() && !t.Failed() {
			t.workload(t.client, 2, 5)
		}
	})
	defer writers.Wait()
	defer stop.Store(true)
	for range 15 {
		f, end := t.followUntil(t.B)
		arrived := f.await(t.Late, func() bool { return len(f.joined) >= 5 || t.Failed() })
		end()
		if !arrived || t.Failed() {
			t.Fatal("the feed is wrong, or no changes arrive")
		}
	}
	final := t.follow(t.B)
	stop.Store(true)
	writers.Wait()
	t.wantSame(early, final)
}

// feedLarge has more entries than one page of any store's list. All of them come and go while
// followers start: their pages must still be of one moment.
func feedLarge(t *trial) {
	early := t.follow(t.A)
	const workers, each = 16, 160
	mine := make([][]*lock.Entry, workers)
	t.turnOver(mine, each)
	var stop atomic.Bool
	var writers sync.WaitGroup
	writers.Go(func() {
		for !stop.Load() && !t.Failed() {
			t.turnOver(mine, 10)
		}
	})
	defer writers.Wait()
	defer stop.Store(true)
	for range 6 {
		_, end := t.followUntil(t.B)
		end()
	}
	late := t.follow(t.B)
	stop.Store(true)
	writers.Wait()
	t.settle(early, late)
	v := late.state()
	if n := len(v.queues); n != workers*each+1 {
		t.Errorf("a late follower sees %d locks, want %d", n, workers*each+1)
	}
	if diff := diff(early.state().queues, v.queues); diff != "" {
		t.Errorf("two feeds differ (-early +late):\n%s", diff)
	}
}

// turnOver has each worker enqueue n entries on new locks, and remove as many of
// its oldest if it has them.
func (t *trial) turnOver(mine [][]*lock.Entry, n int) {
	together(len(mine), func(worker int) {
		old := mine[worker]
		for i := range n {
			e, _, err := t.client(worker).Enqueue(t.ctx, t.draft(fmt.Sprintf("lock-%s", crand.Text())))
			if err == nil && i < len(old) {
				err = t.client(worker+1).Remove(t.ctx, old[i], lock.Released)
			}
			if err != nil {
				t.Errorf("Enqueue or Remove: %v", err)
				return
			}
			mine[worker] = append(mine[worker], e)
		}
		mine[worker] = mine[worker][min(n, len(old)):]
	})
}

func feedCompacted(t *trial) {
	a, b := t.follow(t.A), t.follow(t.B)
	for range 3 {
		t.workload(t.client, 2, 10)
		t.Compact(t.T)
	}
	t.workload(t.client, 2, 10)
	t.wantSame(a, b, t.follow(t.Reopen(t.T)))
}
