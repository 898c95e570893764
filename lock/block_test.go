package lock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// TestPositionsInALongQueue: they are those of a plain list, whoever leaves, from the
// front, from the back and from between.
func TestPositionsInALongQueue(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		table, line, number := lock.NewTable(), []lock.ID(nil), uint64(0)
		join := func() {
			number++
			e := locktest.Entry(lock.ID(fmt.Sprint(number)), number, "a")
			if _, err := table.Insert(e); err != nil {
				t.Fatal(err)
			}
			line = append(line, e.ID)
		}
		leave := func(i int) {
			table.Remove(line[i])
			line = slices.Delete(line, i, i+1)
		}
		check := func() {
			t.Helper()
			for i, id := range line { // the first holds, and its position is 0
				if got := table.Position(id); got != i {
					t.Fatalf("seed %d: position %d of %d is told as %d", seed, i, len(line), got)
				}
			}
			for _, position := range []int{1, 8} {
				var want lock.ID
				if position < len(line) {
					want = line[position]
				}
				if got := idAt(table, position); got != want {
					t.Fatalf("seed %d: at position %d of %d waits %q, not %q", seed, position, len(line)-1, got, want)
				}
			}
		}
		for range 1000 {
			join()
		}
		check()
		for len(line) > 0 {
			at := random.IntN(len(line)) // a run of neighbours leaves from there
			for range min(len(line)-at, 1+random.IntN(200)) {
				leave(at)
			}
			for range random.IntN(60) {
				join()
			}
			for range random.IntN(40) {
				if len(line) > 0 {
					leave(random.IntN(len(line)))
				}
			}
			check()
		}
		if q := table.Queue(lock.Ref{Tenant: "t", Name: "a"}); q != nil {
			t.Fatalf("seed %d: the queue is still there", seed)
		}
	}
}

// BenchmarkPosition is what each renewal of the last of many waiters asks for.
func BenchmarkPosition(b *testing.B) {
	const waiters = 50_000
	table := lock.NewTable()
	for n := range uint64(waiters + 1) {
		if _, err := table.Insert(locktest.Entry(lock.ID(fmt.Sprint(n)), n+1, "a")); err != nil {
			b.Fatal(err)
		}
	}
	last := lock.ID(fmt.Sprint(waiters))
	for b.Loop() {
		if table.Position(last) != waiters {
			b.Fatal(table.Position(last))
		}
	}
}

// idAt is whose the position is, "" if fewer wait.
func idAt(table *lock.Table, position int) lock.ID {
	q := table.Queue(lock.Ref{Tenant: "t", Name: "a"})
	if q == nil {
		return ""
	}
	if e := q.Waiter(position); e != nil {
		return e.ID
	}
	return ""
}
