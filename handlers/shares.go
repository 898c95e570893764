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

// taking is what one request has taken of shares.
type taking struct {
	of   *shares
	size int
}

// take counts more of it until the request ends. It reports false, and counts nothing, if there is
// too much already.
func (t *taking) take(tenant string, size int) bool {
	ok := t.of.take(tenant, size)
	if ok {
		t.size += size
	}
	return ok
}

// takeAnyway counts what a request has to get all the same.
func (t *taking) takeAnyway(tenant string, size int) {
	t.of.takeAnyway(tenant, size)
	t.size += size
}

// giveBack ends what take counted.
func (t *taking) giveBack(tenant string) {
	if t.size > 0 {
		t.of.give(tenant, t.size)
		t.size = 0
	}
}
