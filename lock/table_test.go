package lock_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

func TestFront(t *testing.T) {
	x, s := lock.Claim{Mode: lock.Exclusive}, lock.Claim{Mode: lock.Shared}
	wide := func(permits, limit int) lock.Claim {
		return lock.Claim{Mode: lock.Semaphore, Limit: limit, Permits: permits}
	}
	sem := func(limit int) lock.Claim { return wide(1, limit) }
	for name, c := range map[string]struct {
		queue []lock.Claim
		want  int
	}{
		"empty":                          {nil, 0},
		"exclusive alone":                {[]lock.Claim{x}, 1},
		"exclusive before all":           {[]lock.Claim{x, x, s}, 1},
		"shared together":                {[]lock.Claim{s, s, s}, 3},
		"shared stop at a writer":        {[]lock.Claim{s, s, x, s}, 2},
		"semaphore up to its limit":      {[]lock.Claim{sem(2), sem(2), sem(2)}, 2},
		"semaphore of one":               {[]lock.Claim{sem(1), sem(1)}, 1},
		"semaphores of different limits": {[]lock.Claim{sem(3), sem(2), sem(3), sem(3)}, 3},
		"a raised limit":                 {[]lock.Claim{sem(1), sem(3), sem(3), sem(3)}, 3},
		"a lowered limit":                {[]lock.Claim{sem(3), sem(3), sem(1), sem(3)}, 2},
		"permits up to the limit":        {[]lock.Claim{wide(2, 5), wide(3, 5), sem(5)}, 2},
		"none passes a wide request":     {[]lock.Claim{wide(4, 5), wide(2, 5), sem(5)}, 1},
		"semaphore beside shared":        {[]lock.Claim{s, sem(2)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lock.Front(c.queue); got != c.want {
				t.Errorf("Front(%v) = %d, want %d", c.queue, got, c.want)
			}
		})
	}
}

func tableOf(t *testing.T, entries ...*lock.Entry) *lock.Table {
	t.Helper()
	table := lock.NewTable()
	for _, e := range entries {
		if _, err := table.Insert(e); err != nil {
			t.Fatalf("Insert(%s): %v", e.ID, err)
		}
	}
	return table
}

func TestSetHoldsOnlyWhenItHoldsEverywhere(t *testing.T) {
	table := tableOf(
		t, locktest.Entry("b", 1, "b"), locktest.Entry("set", 2, "a", "b", "c"),
		locktest.Entry("a", 3, "a"),
	)
	if _, holds := table.Entry("set"); holds {
		t.Fatal("the set holds while another holds b")
	}
	if _, holds := table.Entry("a"); holds {
		t.Fatal("a overtook a set that is before it")
	}
	if _, _, granted := table.Remove("b"); !slices.Equal(locktest.IDs(granted), []lock.ID{"set"}) {
		t.Errorf("Remove(b) granted %v, want [set]", locktest.IDs(granted))
	}
	if _, _, granted := table.Remove("set"); !slices.Equal(locktest.IDs(granted), []lock.ID{"a"}) {
		t.Errorf("Remove(set) granted %v, want [a]", locktest.IDs(granted))
	}
}

func TestPosition(t *testing.T) {
	table := tableOf(t,
		locktest.Entry("holder", 1, "a"), locktest.Entry("next", 2, "a"),
		locktest.Entry("set", 3, "a", "b"), locktest.Entry("last", 4, "b"))
	got := map[lock.ID]int{}
	for _, id := range []lock.ID{"holder", "next", "set", "last", "unknown"} {
		got[id] = table.Position(id)
	}
	want := map[lock.ID]int{"holder": 0, "next": 1, "set": 2, "last": 1, "unknown": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

func TestInsertRefusesWhatIsOutOfOrder(t *testing.T) {
	for name, late := range map[string]*lock.Entry{
		"same number":          locktest.Entry("late", 5, "a"),
		"smaller number":       locktest.Entry("late", 4, "a"),
		"in one of its queues": locktest.Entry("late", 5, "0", "a", "z"),
	} {
		t.Run(name, func(t *testing.T) {
			table := tableOf(t, locktest.Entry("newest", 5, "a"))
			if _, err := table.Insert(late); err == nil {
				t.Error("Insert returned no error")
			}
			if n, _ := table.Len(); n != 1 || table.Queue(lock.Ref{Tenant: "t", Name: "0"}) != nil {
				t.Error("a refused entry left something behind")
			}
		})
	}
}

func TestInsertAllowsOneNumberInSeparateQueues(t *testing.T) {
	table := tableOf(t, locktest.Entry("a", 5, "a"), locktest.Entry("b", 5, "b"))
	other := locktest.Entry("other tenant", 5, "a")
	other.Tenant = "u"
	if holds, err := table.Insert(other); !holds || err != nil {
		t.Errorf("Insert = %t, %v, want true, nil", holds, err)
	}
}

func TestCanonical(t *testing.T) {
	claims := []lock.Claim{{Name: "b"}, {Name: "a:2"}, {Name: "a"}, {Name: "B"}, {Name: "a-1"}}
	lock.Canonical(claims)
	want := []lock.Claim{{Name: "B"}, {Name: "a"}, {Name: "a-1"}, {Name: "a:2"}, {Name: "b"}}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("Canonical (-want +got):\n%s", diff)
	}
}
