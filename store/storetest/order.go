package storetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

func orderCases() []testCase {
	return []testCase{
		{name: "order/thousands on one lock", run: orderOneLock, alone: true},
		{name: "order/many locks and sets", run: orderManyLocks},
	}
}

// attempt is an Enqueue with the times between which it happened.
type attempt struct {
	entry      *lock.Entry
	start, end time.Time
}

// journal collects attempts from many goroutines.
type journal struct {
	mu  sync.Mutex
	all []attempt
}

func (j *journal) add(a attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, a)
}

// enqueueMany runs workers of both clients that enqueue what next returns.
func (t *trial) enqueueMany(workers, each int, next func(worker int) *lock.Entry) *journal {
	var j journal
	together(workers, func(worker int) {
		for range each {
			draft, start := next(worker), time.Now()
			e, _, err := t.client(worker).Enqueue(t.ctx, draft)
			if err != nil {
				t.Errorf("Enqueue: %v", err)
				return
			}
			j.add(attempt{e, start, time.Now()})
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return &j
}

// orderOneLock gives a group commit every chance to put two entries of a lock
// into one transaction, where they would share a number.
func orderOneLock(t *trial) {
	j := t.enqueueMany(24, 100, func(int) *lock.Entry { return t.draft("a") })
	t.checkOrder("a", j.all)
}

// orderManyLocks mixes entries of one lock with sets that overlap.
func orderManyLocks(t *trial) {
	b := t.follow(t.B)
	names := []string{"a", "b", "c", "d", "e", "f"}
	j := t.enqueueMany(16, 50, func(int) *lock.Entry {
		return t.draft(pick(names, 1+rand.IntN(4))...)
	})
	t.settle(b)
	for _, name := range names {
		var of []attempt
		for _, a := range j.all {
			if slices.ContainsFunc(a.entry.Claims, func(c lock.Claim) bool { return c.Name == name }) {
				of = append(of, a)
			}
		}
		t.checkOrder(name, of)
		if diff := diff(t.queue(t.A, t.ref(name)), b.state().entries(t.ref(name))); diff != "" {
			t.Errorf("%s: the feed is not the queue (-queue +feed):\n%s", name, diff)
		}
	}
}

// pick returns n of the names.
func pick(names []string, n int) []string {
	picked := slices.Clone(names)
	rand.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
	return picked[:n]
}

// checkOrder checks that no two attempts on a lock share a number, that an
// attempt which began after another ended has the greater number, and that the
// queue holds all of them in that order.
func (t *trial) checkOrder(name string, attempts []attempt) {
	t.Helper()
	slices.SortFunc(
		attempts, func(a, b attempt) int { return cmp.Compare(a.entry.Number, b.entry.Number) },
	)
	var want []*lock.Entry
	latest := time.Time{} // start of any attempt with a smaller number
	for i, a := range attempts {
		want = append(want, a.entry)
		if i > 0 && a.entry.Number == attempts[i-1].entry.Number {
			t.Fatalf("%s: two entries share the number %d", name, a.entry.Number)
		}
		if a.end.Before(latest) {
			t.Fatalf(
				"%s: the entry at %d was there before an attempt with a smaller number began", name,
				a.entry.Number,
			)
		}
		if a.start.After(latest) {
			latest = a.start
		}
	}
	t.wantQueue(t.B, t.ref(name), want...)
}
