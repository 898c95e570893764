package service

import (
	"container/heap"
	"context"
	"time"
)

// asyncTenant is one tenant's part of what is late or attended.
type asyncTenant struct {
	late     asyncQueue
	attended int
	inTurn   bool // it is among the turns
}

// tenant is that of the entry.
func (a *asyncKeeper) tenant(e *asyncEntry) *asyncTenant {
	t := a.tenants[e.entry.Tenant]
	if t == nil {
		t = &asyncTenant{}
		a.tenants[e.entry.Tenant] = t
	}
	return t
}

// attend begins to do what is due. When more is than can be attended, tenants take turns.
func (a *asyncKeeper) attend(ctx context.Context) {
	for now := time.Now(); len(a.due) > 0 && !a.due[0].at.After(now); {
		e := heap.Pop(&a.due).(*asyncEntry)
		t := a.tenant(e)
		e.late = true
		heap.Push(&t.late, e)
		a.takeTurn(t)
	}
	for len(a.turns) > 0 && a.attended < asyncAtOnce {
		t := a.turns[0]
		a.turns[0] = nil
		a.turns, t.inTurn = a.turns[1:], false
		if len(t.late) > 0 {
			a.begin(ctx, heap.Pop(&t.late).(*asyncEntry), t)
			a.takeTurn(t)
		}
	}
}

// takeTurn has a tenant wait for its turn, if it may have another entry attended.
func (a *asyncKeeper) takeTurn(t *asyncTenant) {
	if !t.inTurn && len(t.late) > 0 && t.attended < asyncOfOne {
		t.inTurn = true
		a.turns = append(a.turns, t)
	}
}

// begin has an entry attended.
func (a *asyncKeeper) begin(ctx context.Context, e *asyncEntry, t *asyncTenant) {
	e.late, e.attended = false, true
	t.attended++
	a.attended++
	a.workers.Go(func() {
		e.over, e.at = e.attend(ctx)
		a.done <- e
	})
}

// leave is for an entry that was attended.
func (a *asyncKeeper) leave(e *asyncEntry) {
	t := a.tenant(e)
	a.attended--
	t.attended--
	a.takeTurn(t)
	if t.attended == 0 && len(t.late) == 0 {
		delete(a.tenants, e.entry.Tenant)
	}
}
