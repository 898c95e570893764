package handlers

import (
	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// entryOf describes an entry of one lock.
func entryOf(g *service.Grant) api.Entry {
	e := g.Entry
	fields := api.EntryFields{
		ID: string(e.ID), Name: e.Name(), Mode: string(e.Claims[0].Mode), Limit: e.Claims[0].Limit,
		Permits: e.Claims[0].Permits, GrantFields: fieldsOf(g),
	}
	if g.Held {
		return api.Entry{Held: &api.HeldEntry{
			EntryFields: fields, State: "held", Fence: e.Number, WaitedSeconds: api.SecondsOf(g.Waited),
			ReleaseRequested: askedOf(g.Asked),
		}}
	}
	return api.Entry{
		Waiting: &api.WaitingEntry{
			EntryFields: fields, State: "waiting", Position: max(1, g.Position), WaitUntil: waitUntil(e),
		},
	}
}

// waitUntil is nil for an entry that does not queue.
func waitUntil(e *lock.Entry) *api.Instant {
	if e.Tries() {
		return nil
	}
	return new(api.InstantOf(e.WaitUntil))
}

// askedOf is nil if no waiter asks the holder to finish.
func askedOf(a *view.Asked) *api.ReleaseRequested {
	if a == nil {
		return nil
	}
	return &api.ReleaseRequested{
		Since: api.InstantOf(a.Since), By: a.By, Waiting: a.Waiting, WishedAt: api.InstantOf(a.Wished),
	}
}

func fieldsOf(g *service.Grant) api.GrantFields {
	e := g.Entry
	return api.GrantFields{
		Holder: e.Holder, Token: g.Token, TTLSeconds: api.SecondsOf(e.TTL),
		ExpiresAt: api.InstantOf(g.ExpiresAt), EnqueuedAt: api.InstantOf(e.EnqueuedAt),
		Metadata: e.Metadata,
	}
}

// briefly describes holders without their metadata.
func briefly(holders []view.Holder, name string) []api.Holder {
	out := holdersOf(holders, name)
	for i := range out {
		out[i].Metadata = nil
	}
	return out
}

// holdersOf describes those who hold the lock with the name.
func holdersOf(holders []view.Holder, name string) []api.Holder {
	out := make([]api.Holder, 0, len(holders))
	for _, h := range holders {
		claim := claimOn(h.Entry, name)
		v := api.Holder{
			Holder: h.Entry.Holder, Since: api.InstantOf(h.Since), Fence: h.Entry.Number,
			Mode: string(claim.Mode), Limit: claim.Limit, Permits: claim.Permits,
			Metadata: h.Entry.Metadata,
		}
		if !h.ExpiresAt.IsZero() {
			v.ExpiresAt = new(api.InstantOf(h.ExpiresAt))
		}
		out = append(out, v)
	}
	return out
}

func claimOn(e *lock.Entry, name string) lock.Claim {
	for _, c := range e.Claims {
		if c.Name == name {
			return c
		}
	}
	return e.Claims[0]
}

func lockOf(v *service.LockView) *api.Lock {
	out := &api.Lock{
		Name: v.Name, Holders: holdersOf(v.Holders, v.Name),
		Waiters: make([]api.Waiter, 0, len(v.Waiters)),
		Waiting: v.Waiting, Fence: v.Newest, Revision: v.Revision, Closed: closingOf(v.Closure),
		ReleaseRequested: askedOf(v.Asked), Permits: permitsOf(&v.Queue),
		Figures: api.Figures{
			Acquisitions: v.Figures.Acquisitions, Expirations: v.Figures.Expirations,
			WaitSeconds: percentilesOf(v.Figures.Wait), HoldSeconds: percentilesOf(v.Figures.Hold),
		},
	}
	for _, w := range v.Waiters {
		claim := claimOn(w.Entry, v.Name)
		out.Waiters = append(out.Waiters, api.Waiter{
			Position: w.Position, Holder: w.Entry.Holder, Mode: string(claim.Mode), Limit: claim.Limit,
			Permits: claim.Permits, PermitsBefore: w.PermitsBefore,
			EnqueuedAt: api.InstantOf(w.Entry.EnqueuedAt), WaitedSeconds: api.SecondsOf(w.Waited),
			Metadata: w.Entry.Metadata,
		})
	}
	if v.Advised > 0 {
		out.Figures.RecommendedTTLSeconds = new(api.SecondsOf(v.Advised))
	}
	return out
}

func permitsOf(q *view.Queue) api.Permits {
	out := api.Permits{PermitsHeld: q.Taken, Limits: q.Limits}
	if q.Differs != nil {
		out.LimitsDifferSince = new(api.InstantOf(q.Differs.EnqueuedAt))
	}
	return out
}

// percentilesOf is nil without samples: a 0 would say that all were quick.
func percentilesOf(p figures.Percentiles) *api.Percentiles {
	if p.Samples == 0 {
		return nil
	}
	return &api.Percentiles{
		P50: api.SecondsOf(p.P50), P90: api.SecondsOf(p.P90), P99: api.SecondsOf(p.P99),
	}
}
