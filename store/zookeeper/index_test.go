package zookeeper

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

// indexed returns an entry of some of four locks.
func indexed(n int, r *rand.Rand) *lock.Entry {
	e := &lock.Entry{ID: lock.ID(fmt.Sprint(n)), Tenant: "acme", Number: uint64(1 + r.IntN(1000))}
	for i := range 4 {
		if r.IntN(2) == 0 || i == 3 && len(e.Claims) == 0 {
			e.Claims = append(e.Claims, lock.Claim{Name: fmt.Sprint("lock-", i), Mode: lock.Exclusive})
		}
	}
	return e
}

// TestIndex: whatever comes and goes, in whatever order, the queue of a lock is what one would find
// among all entries, and nothing is left of what has gone.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := newIndex()
	check := func() {
		t.Helper()
		for i := range 4 {
			ref := lock.Ref{Tenant: "acme", Name: fmt.Sprint("lock-", i)}
			var want []*lock.Entry
			for _, e := range x.byKey {
				if len(lock.ClaimsOn([]*lock.Entry{e}, ref.Name)) > 0 {
					want = append(want, e)
				}
			}
			got, number := x.queue(
				ref,
			), func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) }
			sameOnes := len(got) == len(want) &&
				!slices.ContainsFunc(want, func(e *lock.Entry) bool { return !slices.Contains(got, e) })
			if !sameOnes || !slices.IsSortedFunc(got, number) {
				t.Fatalf(
					"the queue of %s has %d entries, of %d, in order: %t", ref.Name, len(got), len(want),
					slices.IsSortedFunc(got, number),
				)
			}
		}
	}
	for n := range 3000 {
		x.add(indexed(n%100, r))
		if r.IntN(2) == 0 {
			x.remove(keyOf(indexed(r.IntN(100), r)))
		}
		for k := range x.byKey {
			if r.IntN(40) == 0 {
				x.remove(k)
			}
		}
		check()
	}
	for k := range x.byKey {
		x.remove(k)
	}
	if len(x.byKey) != 0 || len(x.queues) != 0 {
		t.Errorf("%d entries and %d queues are left", len(x.byKey), len(x.queues))
	}
}

// TestIndexLooksAtOneQueue: reading a queue does not scan all entries, under the feed's lock;
// there can be very many.
func TestIndexLooksAtOneQueue(t *testing.T) {
	x, r := newIndex(), rand.New(rand.NewPCG(1, 2))
	mine := indexed(1, r)
	x.add(mine)
	other := *mine
	other.ID = "of no queue"
	x.byKey[keyOf(&other)] = &other
	if got := x.queue(lock.Ref{Tenant: "acme", Name: mine.Name()}); len(got) != 1 || got[0] != mine {
		t.Errorf("the queue is %v", got)
	}
}
