package service

import (
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
)

// lostTo notes a genuine token whose entry had expired: its holder still worked.
func (x *entries) lostTo(req TokenRequest, kind figures.SignKind, err error) {
	var lost *lock.Error
	if !errors.As(err, &lost) || lost.Code != lock.Lost || lost.Reason != lock.Expired {
		return
	}
	id, number, err := x.tokens.find(req)
	if err != nil {
		return
	}
	names := []string{req.Name}
	if req.Set {
		names = x.figures.SetOf(id, number)
	}
	for _, name := range names {
		x.figures.Sign(lock.Ref{Tenant: req.Tenant, Name: name}, figures.Sign{Kind: kind, Entry: id, Number: number, At: x.Now()})
	}
}

// renewedAt notes the renewal of an entry that holds, and whether it came late. Another replica
// may have renewed it in between, of which this one does not know.
func (x *entries) renewedAt(e *lock.Entry, at time.Time) {
	since, holds := x.view.HeldSince(e.ID)
	last := x.figures.Renewed(e.ID, at)
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
		x.figures.Sign(lock.Ref{Tenant: e.Tenant, Name: c.Name}, figures.Sign{
			Kind: figures.RenewedLate, Entry: e.ID, Number: e.Number, Holder: e.Holder, At: x.Now(), After: gap, TTL: e.TTL,
		})
	}
}
