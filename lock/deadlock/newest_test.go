package deadlock_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

func newest(e *lock.Entry) *lock.Entry { e.OnlyNewest = true; return unnamed(e) }

// superseded returns which of the entries 1 to n give way to a newer one, and to which.
func (h *hall) superseded(n int) []string {
	var all []string
	for i := range n {
		id := lock.ID(fmt.Sprint(i + 1))
		if r := h.table.Rejection(id); r != nil && r.Newer != nil {
			all = append(all, string(id+" by "+r.Newer.ID))
		}
	}
	return all
}

func (h *hall) wants(n int, what string, want ...string) {
	h.t.Helper()
	if got := h.superseded(n); !slices.Equal(got, want) {
		h.t.Errorf("%s: superseded are %v, want %v", what, got, want)
	}
}

// TestOnlyTheNewestWaits: of a chain of waiters with the flag the last one waits. What leaves
// before the others were removed takes nothing with it, and what holds stays.
func TestOnlyTheNewestWaits(t *testing.T) {
	h := newHall(t)
	h.join(newest(named("1", 0, "a", "x")), newest(named("2", 0, "b", "x")))
	h.wants(2, "a holder and a waiter")
	h.join(named("3", 0, "c", "x"), newest(named("4", 0, "d", "x")), newest(named("5", 0, "e", "x")))
	h.wants(5, "a chain", "2 by 4", "4 by 5")
	h.leave("4")
	h.wants(5, "the middle has left", "2 by 5")
	h.leave("5")
	h.wants(5, "the newest has left")
	h.join(newest(named("6", 0, "f", "x")))
	h.leave("1")
	h.wants(6, "the superseded one holds")
}

// TestNewerOfASet: a later entry of any of its locks supersedes a set, and a set the entries
// that wait for any of its locks.
func TestNewerOfASet(t *testing.T) {
	h := newHall(t)
	h.join(named("1", 0, "a", "x", "y"), newest(named("2", 0, "b", "x")))
	h.join(newest(named("3", 0, "c", "x", "y")), newest(named("4", 0, "d", "y")))
	h.wants(4, "sets", "2 by 3", "3 by 4")
}

// TestWhoLeavesSupersedesNobody: an entry that is refused itself leaves the one before it as the
// newest; so does one that does not queue.
func TestWhoLeavesSupersedesNobody(t *testing.T) {
	h := newHall(t)
	h.join(named("1", 0, "a", "x"), newest(named("2", 0, "b", "x")))
	h.join(counted(newest(named("3", 0, "c", "x")), 2))
	h.wants(3, "the newer is of another mode")
	h.number++
	if _, err := h.table.Insert(tries(newest(named("4", h.number, "d", "x")))); err != nil {
		t.Fatal(err)
	}
	h.table.Detect()
	h.wants(4, "the newer tries")
}

// TestGroundsOfTheSuperseded: it is removed only while an entry before it is there. The newer
// one may have left.
func TestGroundsOfTheSuperseded(t *testing.T) {
	h := newHall(t)
	h.join(named("1", 0, "a", "x"), newest(named("2", 0, "b", "x")), newest(named("3", 0, "c", "x")))
	grounds, ok := h.table.Grounds("2")
	if ids := locktest.IDs(grounds); !ok || !slices.Equal(ids, []lock.ID{"1"}) {
		t.Errorf("grounds are %v, %t, want [1]", ids, ok)
	}
	if _, ok := h.table.Grounds("3"); ok {
		t.Error("the newest has grounds to leave")
	}
}
