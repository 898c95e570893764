package handlers

import (
	"container/list"
	"context"
	"runtime"
	"slices"
	"sync"
)

const (
	// maxGateWaiters bounds the operations that wait at the gate, and maxGateWaitersOfTenant those of
	// one tenant: over it they are rejected at once.
	maxGateWaiters         = 1000
	maxGateWaitersOfTenant = 100
)

// gateSlots is how many operations run at once. The other processors serve acquires, renewals and
// releases.
func gateSlots() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// newGate returns the gate of the operations that walk many rows, with so many slots.
func newGate(slots int) *gate {
	return &gate{
		slots: slots, most: maxGateWaiters, mostOfTenant: maxGateWaitersOfTenant, kind: "lists and looks",
	}
}

// gate bounds how many operations that walk many rows run at once: each keeps a processor busy for
// milliseconds, for which acquires, renewals and releases of all tenants would wait. Tenants
// alternate; the operations of one tenant start in their order. Nothing else waits there.
type gate struct {
	slots              int
	most, mostOfTenant int // that wait
	kind               string

	mu      sync.Mutex
	running int
	waiting int
	tenants []*gateQueue // that have waiters, the next first
}

// gateQueue has the waiters of a tenant, the first first. Each receives nil with its slot, or why
// it has none.
type gateQueue struct {
	tenant  string
	waiters list.List // of chan error
}

// enter waits for a slot until ctx ends, and returns its error then, or [lock.Overloaded] at once.
// A caller without an error calls leave.
func (g *gate) enter(ctx context.Context, tenant string) error {
	w, err := g.join(tenant)
	if w == nil {
		return err
	}
	ready := w.Value.(chan error)
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		if !g.withdraw(tenant, w) && <-ready == nil {
			g.leave() // it got its slot meanwhile
		}
		return ctx.Err()
	}
}

// join takes a free slot, or returns a waiter.
func (g *gate) join(tenant string) (*list.Element, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running < g.slots {
		g.running++
		return nil, nil //nolint:nilnil // it need not wait
	}
	i := g.index(tenant)
	if i < 0 {
		i = len(g.tenants)
		g.tenants = append(g.tenants, &gateQueue{tenant: tenant})
	}
	q := g.tenants[i]
	if n := q.waiters.Len(); n >= g.mostOfTenant || g.waiting >= g.most && !g.shed(n+1) {
		if n == 0 {
			g.tenants = g.tenants[:i]
		}
		return nil, errOverloaded(g.kind)
	}
	g.waiting++
	return q.waiters.PushBack(make(chan error, 1)), nil
}

// shed rejects the last waiter of the tenant with most, unless it has no more than so many. So
// tenants with many waiters do not keep one with few from waiting.
func (g *gate) shed(few int) bool {
	most := slices.MaxFunc(g.tenants, func(a, b *gateQueue) int {
		return a.waiters.Len() - b.waiters.Len()
	})
	if most.waiters.Len() <= few {
		return false
	}
	g.answer(most, most.waiters.Back(), errOverloaded(g.kind))
	return true
}

// answer ends the wait of a waiter.
func (g *gate) answer(q *gateQueue, w *list.Element, err error) {
	q.waiters.Remove(w).(chan error) <- err
	g.waiting--
}

func (g *gate) index(tenant string) int {
	return slices.IndexFunc(g.tenants, func(q *gateQueue) bool { return q.tenant == tenant })
}

// withdraw removes a waiter. It returns false if the waiter has its answer.
func (g *gate) withdraw(tenant string, w *list.Element) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(w.Value.(chan error)) > 0 {
		return false
	}
	i := g.index(tenant)
	g.waiting--
	if g.tenants[i].waiters.Remove(w); g.tenants[i].waiters.Len() == 0 {
		g.tenants = slices.Delete(g.tenants, i, i+1)
	}
	return true
}

// leave gives the slot to the first waiter of the next tenant.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.tenants) == 0 {
		g.running--
		return
	}
	q := g.tenants[0]
	g.tenants = slices.Delete(g.tenants, 0, 1)
	if g.answer(q, q.waiters.Front(), nil); q.waiters.Len() > 0 {
		g.tenants = append(g.tenants, q)
	}
}

// walk is a request's slot of a gate.
type walk struct {
	gate *gate
	in   bool
}

// enter waits for a slot, unless the request has it: it keeps that until its answer is made.
func (w *walk) enter(ctx context.Context, tenant string) error {
	if w.in {
		return nil
	}
	err := w.gate.enter(ctx, tenant)
	w.in = err == nil
	return err
}

func (w *walk) leave() {
	if w.in {
		w.gate.leave()
		w.in = false
	}
}

// enterGate waits for the request's slot of the gate of operations that walk many rows.
func (r *request) enterGate() error { return r.walk.enter(r.context(), r.tenant()) }

// behindGate runs read behind the gate, and leaves it then.
func (r *request) behindGate(read func()) error {
	if err := r.enterGate(); err != nil {
		return err
	}
	defer r.walk.leave()
	read()
	return nil
}
