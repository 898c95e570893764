package service

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

// NumberedID returns an id that looks random.
func NumberedID(n uint64) lock.ID {
	raw := make([]byte, lock.IDSize)
	binary.BigEndian.PutUint64(raw, (n+1)*0x9e3779b97f4a7c15)
	return lock.IDOf(raw)
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
func (s *Service) ListPart(req view.ListRequest) (more bool) {
	_, more = s.view.List(req, "", &view.Page{})
	return more
}

// Kept returns how many async entries the replica knows of that wait, or have waited. It is
// for a bubble of testing/synctest, when nothing runs.
func (s *Service) Kept() int { return len(s.async.kept) }

// Evidence gives tests what shows of leases that were too short.
type Evidence struct{ *evidence }

// NewEvidence returns one without any.
func NewEvidence() *Evidence { return &Evidence{newEvidence()} }

// Sign adds a sign by the entry with a number.
func (x *Evidence) Sign(r lock.Ref, n uint64) {
	x.add(r, Sign{Kind: RenewedTooLate, Entry: NumberedID(n), Number: n})
}

// Renewal notes a renewal of the entry with a number.
func (x *Evidence) Renewal(n uint64) { x.renewal(NumberedID(n), time.Now()) }

// Renewals returns of how many entries one is known.
func (x *Evidence) Renewals() int { return len(x.renewed) + len(x.before) }

// ExpiredSet notes that the set of an id and a number expired.
func (x *Evidence) ExpiredSet(id, number uint64, names ...string) {
	x.ExpiredSetOf("acme", id, number, names...)
}

// ExpiredSetOf notes that a tenant's expired.
func (x *Evidence) ExpiredSetOf(tenant string, id, number uint64, names ...string) {
	e := &lock.Entry{ID: NumberedID(id), Tenant: tenant, Number: number, Set: true}
	for _, name := range names {
		e.Claims = append(e.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	x.expired(e)
}

// ExpiredEntry notes that a set expired.
func (x *Evidence) ExpiredEntry(e *lock.Entry) { x.expired(e) }

// LocksOf returns the locks of such a set.
func (x *Evidence) LocksOf(id, number uint64) []string { return x.locksOf(NumberedID(id), number) }

// Sets returns of how many sets the locks are known, and how many are in the lists of their tenants.
func (x *Evidence) Sets() (sets, listed int) {
	for _, of := range x.sets.share.lists {
		listed += of.all.Len()
	}
	return len(x.sets.byID), listed
}

// Len returns how many locks there is evidence of, and how much of one.
func (x *Evidence) Len(r lock.Ref) (locks, signs int, counted uint64) {
	all, counted, _ := x.read(r)
	return len(x.locks), len(all), counted
}

// RowExpiries gives tests the ends of the leases of rows.
type RowExpiries struct{ *expiries }

// NewRowExpiries returns one without answers.
func NewRowExpiries() RowExpiries { return RowExpiries{newExpiries()} }

// Mark adds to lines what is known, after it asked.
func (x RowExpiries) Mark(lines []lists.Line, remaining func(context.Context, *lock.Entry) (time.Duration, error)) {
	x.ofRows(context.Background(), lines, remaining)
}

// SlackSamples gives tests which renewals are measured.
type SlackSamples struct{ slackSamples }

// Take reports whether one is measured now.
func (x *SlackSamples) Take(now time.Time) bool { return x.take(now) }

// Rest has none be measured for a while.
func (x *SlackSamples) Rest(now time.Time) { x.rest(now) }
