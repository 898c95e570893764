package lock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// TestPositionsInALongQueue: they are those of a plain list, whichever entry leaves, from the
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
					t.Fatalf(
						"seed %d: at position %d of %d waits %q, not %q", seed, position, len(line)-1, got, want,
					)
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

// TestWhoHoldsInALongQueue: those who hold, and those who wait, are found among others as by
// walking over all of them; sets that wait elsewhere stand between holders.
func TestWhoHoldsInALongQueue(t *testing.T) {
	a, b := lock.Claim{Name: "a", Mode: lock.Shared}, lock.Claim{Name: "b", Mode: lock.Exclusive}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		table, line, number := lock.NewTable(), []lock.ID(nil), uint64(0)
		join := func(claims ...lock.Claim) {
			number++
			e := &lock.Entry{ID: lock.ID(fmt.Sprint(number)), Tenant: "t", Number: number, Claims: claims}
			if _, err := table.Insert(e); err != nil {
				t.Fatal(err)
			}
			line = append(line, e.ID)
		}
		for range 600 {
			if join(a); random.IntN(50) == 0 {
				join(a, b)
			}
		}
		for range random.IntN(300) {
			join(lock.Claim{Name: "a", Mode: lock.Exclusive})
		}
		for len(line) > 0 {
			checkHolding(t, table.Queue(lock.Ref{Tenant: "t", Name: "a"}), line[0])
			at := random.IntN(len(line))
			for range min(len(line)-at, 1+random.IntN(100)) {
				table.Remove(line[at])
				line = slices.Delete(line, at, at+1)
			}
			for range random.IntN(40) {
				join(a)
			}
		}
	}
}

func checkHolding(t *testing.T, q *lock.Queue, except lock.ID) {
	t.Helper()
	var holding, waiting []*lock.Entry
	newest := uint64(0)
	for e, holds := range q.Entries() {
		if !holds {
			waiting = append(waiting, e)
			continue
		}
		if holding = append(holding, e); e.ID != except {
			newest = e.Number
		}
	}
	if got := slices.Collect(q.Holding()); !slices.Equal(got, holding) {
		t.Fatalf("%d hold, and %d are told", len(holding), len(got))
	}
	if got := slices.Collect(q.Waiters()); !slices.Equal(got, waiting) {
		t.Fatalf("%d wait, and %d are told", len(waiting), len(got))
	}
	for range q.Holding() { // no more is asked for
		break
	}
	if got := q.NewestHolder(except); got != newest {
		t.Fatalf("the newest but %s is %d, and %d is told", except, newest, got)
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
