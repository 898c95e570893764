package deadlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
)

// hall is a table into which entries come one after the other.
type hall struct {
	t      *testing.T
	table  *deadlock.Table
	number uint64
}

func newHall(t *testing.T) *hall { return &hall{t: t, table: deadlock.NewTable()} }

func (h *hall) join(entries ...*lock.Entry) {
	h.t.Helper()
	for _, e := range entries {
		h.number++
		h.joinAt(e, h.number)
	}
}

func (h *hall) joinAt(e *lock.Entry, number uint64) {
	h.t.Helper()
	if e.Number = number; e.WaitUntil.IsZero() {
		e.WaitUntil = time.Unix(1, 0)
	}
	if _, err := h.table.Insert(e); err != nil {
		h.t.Fatal(err)
	}
	h.table.Detect()
}

func (h *hall) leave(id lock.ID) {
	h.table.Remove(id)
	h.table.Detect()
}

// queue puts n waiters without a name behind the entries in the queue.
func (h *hall) queue(n int, lockName string) {
	h.t.Helper()
	for i := range n {
		h.join(unnamed(named(lock.ID(fmt.Sprint(lockName, i)), 0, "somebody", lockName)))
	}
}

// crossed has y hold hot and wait for own, which x holds, with n others who wait for hot:
// if x asks for hot, that is a deadlock.
func crossed(t *testing.T, n int) *hall {
	t.Helper()
	h := newHall(t)
	h.join(named("y-hot", 0, "y", "hot"), named("x-own", 0, "x", "own"), named("y-own", 0, "y", "own"))
	h.queue(n, "hot")
	return h
}

// TestSearchIsBounded: all grants wait for a search, so it must not take longer the
// longer the queues are that clients have filled.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	for n, found := range map[int]bool{deadlock.MaxLooks - 100: true, deadlock.MaxLooks + 100: false} {
		h := crossed(t, n)
		ask := named("x-hot", 0, "x", "hot")
		if cycle := h.table.Cycle(ask); (cycle != nil) != found {
			t.Errorf("behind %d: before it joins, a cycle of %d", n, len(cycle))
		}
		h.join(ask)
		if rejected := h.table.Rejection("x-hot") != nil; rejected != found {
			t.Errorf("behind %d: rejected: %t", n, rejected)
		}
	}
}

// TestWhoIsNotAwaited: a worker that no entry waits for closes no cycle, however many it
// waits behind. That needs no search.
func TestWhoIsNotAwaited(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.join(named("first", 0, "y", "hot"), named("x-own", 0, "x", "own"))
	h.queue(10, "hot")
	all := h.table.Looks()
	h.join(named("x-hot", 0, "x", "hot"))
	if looks := h.table.Looks(); looks != all {
		t.Errorf("to join takes %d looks", all-looks)
	}
	// Entries of one transaction have one number, and are looked behind.
	h.join(named("v-own", 0, "v", "another"))
	for _, holder := range []string{"somebody", "v"} {
		h.number++
		h.joinAt(unnamed(named(lock.ID("z"+holder), 0, "somebody", "else")), h.number)
		e := named(lock.ID("a"+holder), 0, holder, "hot")
		e.Named = holder == "v"
		if h.joinAt(e, h.number); h.table.Looks() != all {
			t.Errorf("to join beside another takes %s %d looks", holder, all-h.table.Looks())
		}
	}
}

// TestManyWrittenTogether: to learn of many locks of few workers, which the store wrote some at a
// time and in any order of their ids, there is no search. So it is at each start of a replica.
func TestManyWrittenTogether(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.join(named("first", 0, "y", "hot"))
	all := h.table.Looks()
	for i := range 4000 {
		if i%40 == 0 {
			h.number++
		}
		id := lock.ID(fmt.Sprintf("%d", (i*7919)%4000))
		e := named("held"+id, 0, fmt.Sprint("w", i%5), fmt.Sprint("own", i))
		if i%2 == 0 {
			e = named("waits"+id, 0, fmt.Sprint("waiter", i), fmt.Sprint("own", i-41))
		}
		if h.joinAt(e, h.number); h.table.Looks() != all {
			t.Fatalf("the %d. takes %d looks", i, all-h.table.Looks())
		}
		if n := h.table.Beside(); n > 40 {
			t.Fatalf("%d are remembered of a write of 40", n)
		}
	}
}

// TestWrittenTogether: of two entries of one write that would wait for each other the later one in
// order is rejected, in whatever order the table learns of them.
func TestWrittenTogether(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][2]int{"in order": {0, 1}, "backwards": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			h.join(named("x", 0, "a", "x"))
			h.join(named("y", 0, "b", "y"))
			h.number++
			wait := [2]*lock.Entry{named("first", 0, "a", "y"), named("second", 0, "b", "x")}
			for _, i := range order {
				h.joinAt(wait[i], h.number)
			}
			if h.table.Rejection("first") != nil || h.table.Rejection("second") == nil {
				t.Errorf(
					"the first is rejected: %v, the second: %v", h.table.Rejection("first"),
					h.table.Rejection("second"),
				)
			}
		})
	}
}

// TestManyOfOneName: a name with very many waits is no worker, which takes one step after
// another.
func TestManyOfOneName(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.join(named("first", 0, "y", "hot"))
	for i := range 3 * deadlock.MaxWaits {
		h.join(named(lock.ID(fmt.Sprint("x", i)), 0, "x", "hot"))
	}
	rejected := 0
	for i := range 3 * deadlock.MaxWaits {
		if h.table.Rejection(lock.ID(fmt.Sprint("x", i))) != nil {
			rejected++
		}
	}
	if rejected != deadlock.MaxWaits-1 { // all that were looked at but the first
		t.Errorf("%d are rejected", rejected)
	}
	h.leave("first")
	h.leave("x0")
	if looks := h.table.Looks(); looks < 0 {
		t.Errorf("one who leaves costs too many looks: %d are left", looks)
	}
}

// TestOneChangeIsBounded: of many rejections that depend on one entry, not all can be
// looked at again because it leaves.
func TestOneChangeIsBounded(t *testing.T) {
	t.Parallel()
	const workers = 60
	h := newHall(t)
	h.join(named("y-hot", 0, "y", "hot"))
	for i := range workers {
		h.join(shared(named(lock.ID(fmt.Sprint("own", i)), 0, fmt.Sprint("w", i), "own")))
	}
	h.join(named("y-own", 0, "y", "own"), unnamed(named("z", 0, "somebody", "own")))
	h.queue(deadlock.MaxLooks/2, "hot")
	for i := range workers {
		id := lock.ID(fmt.Sprint("ask", i))
		if h.join(named(id, 0, fmt.Sprint("w", i), "hot")); h.table.Rejection(id) == nil {
			t.Fatalf("%s is not rejected", id)
		}
	}
	h.leave("y-own")
	if looks := h.table.Looks(); looks >= 0 || looks < -100 {
		t.Errorf("%d looks are left of a change", looks)
	}
	for i := range workers {
		if h.table.Rejection(lock.ID(fmt.Sprint("ask", i))) != nil {
			t.Errorf("%d is rejected for a cycle that is no more", i)
		}
	}
}
