package service

import (
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
)

// lostTo notes a genuine token whose entry had expired: its holder still worked.
func (s *Service) lostTo(req TokenRequest, kind figures.SignKind, err error) {
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
		names = s.figures.SetOf(id, number)
	}
	for _, name := range names {
		s.figures.Sign(lock.Ref{Tenant: req.Tenant, Name: name}, figures.Sign{Kind: kind, Entry: id, Number: number, At: s.Now()})
	}
}

// renewedAt notes the renewal of an entry that holds, and whether it came late. Another replica
// may have renewed it in between, of which this one does not know.
func (s *Service) renewedAt(e *lock.Entry, at time.Time) {
	since, holds := s.view.HeldSince(e.ID)
	last := s.figures.Renewed(e.ID, at)
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
		s.figures.Sign(lock.Ref{Tenant: e.Tenant, Name: c.Name}, figures.Sign{
			Kind: figures.RenewedLate, Entry: e.ID, Number: e.Number, Holder: e.Holder, At: s.Now(), After: gap, TTL: e.TTL,
		})
	}
}
