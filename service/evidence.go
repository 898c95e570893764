package service

import (
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	maxTraced  = 5000   // locks of which evidence is kept: those that had some last
	maxSigns   = 10     // of one lock, the last
	maxRenewed = 50_000 // entries of which the last renewal is known, twice: some 10 MB
)

// SignKind is a way in which it shows that a lease was too short for its holder.
type SignKind string

// The kinds of signs.
const (
	RenewedTooLate  SignKind = "renewed_after_expiry"
	ReleasedTooLate SignKind = "released_after_expiry"
	RenewedLate     SignKind = "renewed_late" // more than two thirds of the lease had passed
)

// Sign says that a lease was too short for its holder, or nearly.
type Sign struct {
	Kind   SignKind
	Entry  lock.ID
	Number uint64
	Holder string // "" if it is not known any more
	At     time.Time
	After  time.Duration // after the end of the lease, or since the last renewal; 0 if that is not known
	TTL    time.Duration // of a late renewal
}

// evidence is what requests to this replica show of leases that were too short. It is bounded:
// of locks beyond the bound, those go whose evidence is oldest, of the tenant that has most.
type evidence struct {
	mu    sync.Mutex
	locks map[lock.Ref]*lockSigns
	share tenantLists[*lockSigns]

	sets expiredSets

	renewed, before map[lock.ID]time.Time // the last renewals: the newer ones, and those from before these
}

// lockSigns is the evidence about one lock.
type lockSigns struct {
	ref     lock.Ref
	expired uint64 // entries that were renewed or released after they had expired
	late    uint64
	signs   []Sign // the last
	listed  *listed[*lockSigns]
}

func newEvidence() *evidence {
	return &evidence{locks: map[lock.Ref]*lockSigns{}, share: newTenantLists[*lockSigns](), sets: newExpiredSets(), renewed: map[lock.ID]time.Time{}}
}

// add keeps a sign. What an entry repeats counts once.
func (x *evidence) add(r lock.Ref, s Sign) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.of(r)
	late := s.Kind == RenewedLate
	for _, known := range t.signs {
		if known.Entry == s.Entry && known.Number == s.Number && !late && known.Kind != RenewedLate {
			return
		}
	}
	if late {
		t.late++
	} else {
		t.expired++
	}
	if t.signs = append(t.signs, s); len(t.signs) > maxSigns {
		t.signs = append(t.signs[:0], t.signs[1:]...)
	}
}

func (x *evidence) of(r lock.Ref) *lockSigns {
	if t := x.locks[r]; t != nil {
		x.share.touch(t.listed)
		return t
	}
	t := &lockSigns{ref: r}
	t.listed = x.share.add(r.Tenant, t)
	x.locks[r] = t
	if len(x.locks) > maxTraced {
		oldest := x.share.last()
		x.share.remove(oldest.listed)
		delete(x.locks, oldest.ref)
	}
	return t
}

// read returns the signs of a lock, the latest first, and how many there were.
func (x *evidence) read(r lock.Ref) (signs []Sign, expired, late uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.locks[r]
	if t == nil {
		return nil, 0, 0
	}
	for i := range t.signs {
		signs = append(signs, t.signs[len(t.signs)-1-i])
	}
	return signs, t.expired, t.late
}

// renewal notes when an entry was renewed, and returns when it was before, at this replica.
func (x *evidence) renewal(id lock.ID, at time.Time) (last time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if last = x.renewed[id]; last.IsZero() {
		last = x.before[id]
	}
	if len(x.renewed) >= maxRenewed {
		x.before, x.renewed = x.renewed, map[lock.ID]time.Time{}
	}
	x.renewed[id] = at
	return last
}

// expired keeps what locks a set had that has just ended.
func (x *evidence) expired(e *lock.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sets.add(e)
}

// locksOf returns the locks of a set that expired; none if that is not known any more.
func (x *evidence) locksOf(id lock.ID, number uint64) (names []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sets.locksOf(id, number)
}

// lostTo notes a genuine token whose entry had expired: its holder still worked.
func (s *Service) lostTo(req TokenRequest, kind SignKind, err error) {
	var lost *lock.Error
	if !errors.As(err, &lost) || lost.Code != lock.Lost || lost.Reason != lock.Expired {
		return
	}
	id, number, err := s.tokens.find(req)
	if err != nil {
		return
	}
	names := []string{req.Name}
	if req.Set {
		names = s.evidence.locksOf(id, number)
	}
	for _, name := range names {
		s.evidence.add(lock.Ref{Tenant: req.Tenant, Name: name}, Sign{Kind: kind, Entry: id, Number: number, At: s.Now()})
	}
}

// renewedAt notes the renewal of an entry that holds, and whether it came late. Another replica
// may have renewed it in between, of which this one does not know.
func (s *Service) renewedAt(e *lock.Entry, at time.Time) {
	since, holds := s.view.HeldSince(e.ID)
	last := s.evidence.renewal(e.ID, at)
	if !holds {
		return
	}
	if since.After(last) {
		last = since
	}
	gap := at.Sub(last)
	if gap <= e.TTL*2/3 {
		return
	}
	for _, c := range e.Claims {
		s.evidence.add(lock.Ref{Tenant: e.Tenant, Name: c.Name}, Sign{
			Kind: RenewedLate, Entry: e.ID, Number: e.Number, Holder: e.Holder, At: s.Now(), After: gap, TTL: e.TTL,
		})
	}
}
