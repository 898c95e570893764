package lock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// TestRollOfSets: a set stands in a semaphore's front, before one that holds, and waits for another
// lock. Closed, it does not come to hold when that is free, also for who lists anew.
func TestRollOfSets(t *testing.T) {
	table := lock.NewTable()
	insert := func(e *lock.Entry) {
		for i := range e.Claims {
			if e.Claims[i].Name == "s" {
				e.Claims[i].Mode, e.Claims[i].Limit = lock.Semaphore, 3
			}
		}
		if _, err := table.Insert(e); err != nil {
			t.Fatal(err)
		}
	}
	set, holder := locktest.Entry("set", 2, "a", "s"), locktest.Entry("holder", 3, "s")
	insert(locktest.Entry("x", 1, "a"))
	insert(set)
	insert(holder)
	e := locktest.Closing("closure", 10, "t", "s")
	c := lock.NewClosure(e, table.Call(e, slices.Values([]string{"a", "s"})))
	table.Close(c)
	if _, _, granted := table.Remove("x"); len(granted) != 0 {
		t.Errorf("%s came to hold a closed lock", granted[0].ID)
	}
	if blockers, ok := table.Blockers("set", false); !ok || len(blockers) != 1 || blockers[0] != e {
		t.Errorf("it waits because of %v", blockers)
	}
	if bars, certain := c.Bars(holder); bars || !certain {
		t.Error("the holder does not hold")
	}
	if granted := table.Open(c); len(granted) != 1 || granted[0] != set {
		t.Errorf("opened, %v hold", granted)
	}
}

// TestRollIsBounded: of too many queues there is none.
func TestRollIsBounded(t *testing.T) {
	table, names := lock.NewTable(), []string{}
	for n := range 500 {
		names = append(names, fmt.Sprintf("%0150d", n))
		for i := range uint64(2) {
			if _, err := table.Insert(locktest.Entry(lock.ID(fmt.Sprint(n, "-", i)), uint64(2*n)+i+1, names[n])); err != nil {
				t.Fatal(err)
			}
		}
	}
	few, all := locktest.Closing("few", 5000, "t", strings.Repeat("0", 148)+"*"), locktest.Closing("all", 5000, "t", "*")
	if roll := table.Call(few, slices.Values(names)); roll == nil || len(roll.Seats) != 100 || roll.Check() != nil {
		t.Errorf("of some: %v", roll)
	}
	if roll := table.Call(all, slices.Values(names)); roll != nil {
		t.Errorf("a roll of %d queues", len(roll.Seats))
	}
}

// TestClosingIsChecked: what nobody can have written is not taken for a closure.
func TestClosingIsChecked(t *testing.T) {
	for name, change := range map[string]func(*lock.Closing){
		"no locks": func(c *lock.Closing) { c.Locks = lock.Pattern{} },
		"no end":   func(c *lock.Closing) { c.Until = time.Time{} },
		"a reason": func(c *lock.Closing) { c.Reason = "short" },
	} {
		c := locktest.Closing("e", 1, "t", "*").Closing
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		if change(c); c.Check() == nil {
			t.Errorf("%s: %+v passes", name, c)
		}
	}
}
