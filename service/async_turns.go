package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock/heap"
)

// asyncTenant is one tenant's part of what is late or attended.
type asyncTenant struct {
	late     heap.Heap[*asyncEntry]
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
	for now := time.Now(); a.due.Len() > 0 && !a.due.First().at.After(now); {
		e := a.due.Pop()
		t := a.tenant(e)
		e.late = true
		t.late.Push(e)
		a.takeTurn(t)
	}
	for len(a.turns) > 0 && a.attended < asyncAtOnce {
		t := a.turns[0]
		a.turns[0] = nil
		a.turns, t.inTurn = a.turns[1:], false
		if t.late.Len() > 0 {
			a.begin(ctx, t.late.Pop(), t)
			a.takeTurn(t)
		}
	}
}

// takeTurn has a tenant wait for its turn, if it may have another entry attended.
func (a *asyncKeeper) takeTurn(t *asyncTenant) {
	if !t.inTurn && t.late.Len() > 0 && t.attended < asyncOfOne {
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
	if t.attended == 0 && t.late.Len() == 0 {
		delete(a.tenants, e.entry.Tenant)
	}
}
