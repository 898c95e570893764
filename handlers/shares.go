package handlers

import "sync"

// shares bounds how much of something there is at once, in all and of one tenant, so that no
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

// take counts so much more of the tenant, unless that is too much.
func (s *shares) take(tenant string, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all+size > s.most || s.byTenant[tenant]+size > s.mostOfTenant {
		return false
	}
	s.all += size
	s.byTenant[tenant] += size
	return true
}

// takeAnyway counts so much more of the tenant, however much there is.
func (s *shares) takeAnyway(tenant string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all += size
	s.byTenant[tenant] += size
}

// give takes back what was counted.
func (s *shares) give(tenant string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= size
	if s.byTenant[tenant] -= size; s.byTenant[tenant] == 0 {
		delete(s.byTenant, tenant)
	}
}
