package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock/heap"
)

// asyncTenant is one tenant's part of the entries that are due or being handled.
type asyncTenant struct {
	late     heap.Heap[*asyncEntry]
	attended int
	inTurn   bool // it is in the round-robin list
}

// tenant returns the asyncTenant of an entry.
func (a *asyncKeeper) tenant(e *asyncEntry) *asyncTenant {
	t := a.tenants[e.entry.Tenant]
	if t == nil {
		t = &asyncTenant{}
		a.tenants[e.entry.Tenant] = t
	}
	return t
}

// attend starts to handle due entries. If more are due than workers are free, tenants take turns.
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

// takeTurn queues a tenant for its next turn, if it may start another entry.
func (a *asyncKeeper) takeTurn(t *asyncTenant) {
	if !t.inTurn && t.late.Len() > 0 && t.attended < asyncOfOne {
		t.inTurn = true
		a.turns = append(a.turns, t)
	}
}

// begin starts a worker for the entry.
func (a *asyncKeeper) begin(ctx context.Context, e *asyncEntry, t *asyncTenant) {
	e.late, e.attended = false, true
	t.attended++
	a.attended++
	a.workers.Go(func() {
		e.over, e.at = e.attend(ctx)
		a.done <- e
	})
}

// leave takes the entry back after its worker has ended.
func (a *asyncKeeper) leave(e *asyncEntry) {
	t := a.tenant(e)
	a.attended--
	t.attended--
	a.takeTurn(t)
	if t.attended == 0 && t.late.Len() == 0 {
		delete(a.tenants, e.entry.Tenant)
	}
}
