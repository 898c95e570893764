package handlers

import "sync"

// shares bounds how many of something there are at once, in all and of one tenant, so that no
// tenant can keep others from theirs.
type shares struct {
	most, mostOfTenant int

	mu       sync.Mutex
	all      int
	byTenant map[string]int
}

func newShares(most, mostOfTenant int) *shares {
	return &shares{most: most, mostOfTenant: mostOfTenant, byTenant: map[string]int{}}
}

// take counts one more of the tenant, unless there are too many.
func (s *shares) take(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most || s.byTenant[tenant] >= s.mostOfTenant {
		return false
	}
	s.all++
	s.byTenant[tenant]++
	return true
}

// give takes back a take that was true.
func (s *shares) give(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byTenant[tenant]--; s.byTenant[tenant] == 0 {
		delete(s.byTenant, tenant)
	}
}
