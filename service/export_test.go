package service

import (
	"encoding/binary"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Ends gives tests the memory of ends with bounds of their own.
type Ends struct{ endings }

// NewEnds returns an empty one.
func NewEnds(most, ofTenant int) *Ends {
	e := &Ends{newEndings(accounts{})}
	e.most, e.ofTenant = most, ofTenant
	return e
}

// The bounds of a service.
const (
	MaxEnds       = maxEnds
	MaxTenantEnds = maxTenantEnds
)

// Record remembers an end.
func (e *Ends) Record(tenant string, id lock.ID, why lock.Reason, now time.Time) {
	e.record(tenant, id, why, now)
}

// Recall remembers an end from before.
func (e *Ends) Recall(id lock.ID, why lock.Reason, now time.Time) { e.recall("", id, why, now) }

// Reason returns why an entry ended.
func (e *Ends) Reason(id lock.ID, now time.Time) lock.Reason { return e.reason(id, now) }

// Len returns how many are kept, and in how many accounts.
func (e *Ends) Len() (ends, accounts int) { return len(e.byID), len(e.accounts) }

// NumberedID returns an id that looks random.
func NumberedID(n uint64) lock.ID {
	raw := make([]byte, idSize)
	binary.BigEndian.PutUint64(raw, (n+1)*0x9e3779b97f4a7c15)
	return encodeID(raw)
}

// BoundPlaces changes how many places in queues one tenant's entries may take.
func (s *Service) BoundPlaces(n int) {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	s.view.most = n
}

// EndsOf returns how many ends are remembered for the tenant.
func (s *Service) EndsOf(tenant string) int {
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	if a := s.view.accounts[tenant]; a != nil {
		return a.ends.size
	}
	return 0
}

// MaxExpiries is how many answers of the store about leases are kept.
const MaxExpiries = maxExpiries

// Expiries returns how many are.
func (s *Service) Expiries() int {
	s.expiries.mu.Lock()
	defer s.expiries.mu.Unlock()
	return len(s.expiries.newer) + len(s.expiries.last)
}

// ListPart lists as long as the view is held for it, and returns whether there is more.
func (s *Service) ListPart(req ListRequest) (more bool) {
	_, more = s.view.list(req, "", &Page{})
	return more
}
