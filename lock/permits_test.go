package lock_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// TestLimits: of a long queue both ends are read, and few limits are listed.
func TestLimits(t *testing.T) {
	same := func(limit, n int) []int { return slices.Repeat([]int{limit}, n) }
	many := []int{30, 10, 20, 40, 50, 60, 70, 80, 90, 100, 110, 120}
	for name, c := range map[string]struct {
		queue, want []int
		differs     uint64
	}{
		"one entry":         {same(7, 1), []int{7}, 0},
		"all agree":         {same(7, 3000), []int{7}, 0},
		"the second":        {[]int{7, 5, 7, 5}, []int{5, 7}, 2},
		"back to the first": {[]int{5, 5, 7, 5}, []int{5, 7}, 3},
		"at the end":        {slices.Concat(same(7, 3000), same(5, 2)), []int{5, 7}, 3001},
		"in a short queue":  {slices.Concat(same(7, 1500), same(5, 2), same(7, 400)), []int{5, 7}, 1501},
		"many":              {many, slices.Sorted(slices.Values(many[:10])), 2},
	} {
		table := lock.NewTable()
		for i, limit := range c.queue {
			e := locktest.Entry(lock.ID(strconv.Itoa(i)), uint64(i+1), "a")
			e.Claims[0] = lock.Claim{Name: "a", Mode: lock.Semaphore, Limit: limit, Permits: 1}
			if _, err := table.Insert(e); err != nil {
				t.Fatal(err)
			}
		}
		limits, first := table.Queue(lock.Ref{Tenant: "t", Name: "a"}).Limits()
		differs := uint64(0)
		if first != nil {
			differs = first.Number
		}
		if !slices.Equal(limits, c.want) || differs != c.differs {
			t.Errorf("%s: %v, differing from %d on, want %v, %d", name, limits, differs, c.want, c.differs)
		}
	}
}
