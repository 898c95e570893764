package lock_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// TestBlockers: for as long as those in the way of an entry are there, it does not
// hold, whichever others leave; and the queues say the same as the table.
func TestBlockers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, all := filled(t)
		e := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
		nearest := rapid.Bool().Draw(t, "nearest")
		_, holds := table.Entry(e.ID)
		blockers, ok := table.Blockers(e.ID, nearest)
		if ok == holds || ok != (len(blockers) > 0) {
			t.Fatalf(
				"%s holds %t, and its blockers are %v, %t\n%s", e.ID, holds, locktest.IDs(blockers), ok,
				locktest.Describe(table),
			)
		}
		if !ok {
			return
		}
		checkBlockersIn(t, table, e, nearest)
		for _, other := range rapid.Permutation(all).Draw(t, "order") {
			if other != e && !slices.Contains(blockers, other) {
				table.Remove(other.ID)
			}
		}
		if _, holds := table.Entry(e.ID); holds {
			t.Fatalf("%s holds although %v are there", e.ID, locktest.IDs(blockers))
		}
	})
}

// checkBlockersIn: an entry waits in one of its queues at least if it waits.
func checkBlockersIn(t *rapid.T, table *lock.Table, e *lock.Entry, nearest bool) {
	waits := false
	for _, r := range locktest.Refs(e) {
		var queue []*lock.Entry
		for other := range table.Queue(r).Entries() {
			queue = append(queue, other)
		}
		blockers, ok := lock.BlockersIn(queue, e, r.Name, nearest)
		waits = waits || ok
		if ok != (len(blockers) > 0) ||
			slices.ContainsFunc(blockers, func(other *lock.Entry) bool { return other.Number >= e.Number }) {
			t.Fatalf(
				"%s: in the way are %v, %t\n%s", e.ID, locktest.IDs(blockers), ok, locktest.Describe(table),
			)
		}
	}
	if !waits {
		t.Fatalf("%s is in the front of all queues\n%s", e.ID, locktest.Describe(table))
	}
}

// A semaphore of many permits is blocked by the few entries that took them.
func TestFewBlockersTakeManyPermits(t *testing.T) {
	table := lock.NewTable()
	for i, permits := range []int{400, 1, 500, 200, 1} {
		e := locktest.Entry(lock.ID(rune('a'+i)), uint64(i+1), "a")
		e.Claims[0] = lock.Claim{Name: "a", Mode: lock.Semaphore, Limit: 1000, Permits: permits}
		if _, err := table.Insert(e); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[lock.ID][]lock.ID{"d": {"a", "b", "c"}, "e": {"a", "b", "c", "d"}} {
		if got, _ := table.Blockers(id, false); !slices.Equal(locktest.IDs(got), want) {
			t.Errorf("%s is blocked by %v, want %v", id, locktest.IDs(got), want)
		}
	}
}

// An entry with enough permits waits behind a waiter with a lower limit: that one blocks it, with
// its own blockers, however many are between them.
func TestBlockedByALowerLimit(t *testing.T) {
	table, last := lock.NewTable(), lock.ID("")
	for i := range 3 + 2*lock.MaxBlockers {
		last = lock.ID(strconv.Itoa(i))
		e := locktest.Entry(last, uint64(i+1), "a")
		e.Claims[0] = lock.Claim{Name: "a", Mode: lock.Semaphore, Limit: 2000, Permits: 1}
		switch i {
		case 0, 1:
			e.Claims[0].Permits = 400
		case 2:
			e.Claims[0].Limit = 800
		}
		if _, err := table.Insert(e); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := table.Blockers(last, false)
	if !slices.Equal(locktest.IDs(got), []lock.ID{"0", "1", "2"}) {
		t.Errorf("it is blocked by %v, want the waiter and what blocks it", locktest.IDs(got))
	}
}

// A removal is decided by so many at most.
func TestBlockersAreBounded(t *testing.T) {
	for limit, want := range map[int]int{
		1: 1, 7: 7, lock.MaxBlockers: lock.MaxBlockers, lock.MaxBlockers + 1: 0,
	} {
		table, last := lock.NewTable(), lock.ID("")
		for i := range limit + 1 {
			last = lock.ID(rune('0' + i))
			e := locktest.Entry(last, uint64(i+1), "a")
			e.Claims[0] = lock.Claim{Name: "a", Mode: lock.Semaphore, Limit: limit, Permits: 1}
			if _, err := table.Insert(e); err != nil {
				t.Fatal(err)
			}
		}
		if blockers, ok := table.Blockers(last, true); len(blockers) != want || !ok {
			t.Errorf("of a limit of %d there are %d blockers, %t, want %d", limit, len(blockers), ok, want)
		}
	}
}

// TestBlockersOfALongQueue: only so many entries are read, and the first that waits.
func TestBlockersOfALongQueue(t *testing.T) {
	claim := func(mode lock.Mode, permits int) lock.Claim {
		if mode == lock.Semaphore {
			return lock.Claim{Name: "a", Mode: mode, Limit: 1000, Permits: permits}
		}
		return lock.Claim{Name: "a", Mode: mode}
	}
	for _, c := range []struct {
		name             string
		many, then, last lock.Claim
		want             []lock.ID
	}{
		{
			"a writer", claim(lock.Shared, 0), claim(lock.Exclusive, 0), claim(lock.Shared, 0),
			[]lock.ID{"then"},
		},
		{
			"a wide waiter", claim(lock.Semaphore, 1), claim(lock.Semaphore, 1000),
			claim(lock.Semaphore, 1),
			[]lock.ID{"then"},
		},
		{
			"a wide holder", claim(lock.Semaphore, 1), claim(lock.Semaphore, 700),
			claim(lock.Semaphore, 301), nil,
		},
	} {
		table := lock.NewTable()
		for i := range lock.MaxBlockers + 3 {
			e := locktest.Entry(lock.ID(fmt.Sprint(i)), uint64(i+1), "a")
			switch e.Claims[0] = c.many; i {
			case lock.MaxBlockers + 1:
				e.ID, e.Claims[0] = "then", c.then
			case lock.MaxBlockers + 2:
				e.ID, e.Claims[0] = "last", c.last
			}
			if _, err := table.Insert(e); err != nil {
				t.Fatal(err)
			}
		}
		got, ok := table.Blockers("last", false)
		if !slices.Equal(locktest.IDs(got), c.want) || !ok {
			t.Errorf("%s: blocked by %v, %t, want %v", c.name, locktest.IDs(got), ok, c.want)
		}
	}
}
