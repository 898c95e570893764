package handlers

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// turns has large answers made one after the other: each keeps a processor busy for milliseconds, for
// which the small requests of everybody would have to wait. Of one tenant one is made at a time, so
// that those of others wait for one of it at most, and of all as many as half of the processors can make.
type turns struct {
	all *semaphore.Weighted

	mu      sync.Mutex
	tenants map[string]*turn
}

// turn is that of one tenant.
type turn struct {
	next   *semaphore.Weighted
	wanted int // by how many requests
}

// newTurns has so many answers made at once.
func newTurns(atOnce int64) *turns {
	return &turns{all: semaphore.NewWeighted(atOnce), tenants: map[string]*turn{}}
}

// taken is a turn that somebody has. It is his alone: its methods are not for several goroutines.
type taken struct {
	of     *turns
	tenant string
	own    *turn
	ready  bool // its answer may be made, and not only no other of its tenant
	over   bool
}

// take waits for the turn of a tenant, until ctx ends. Whoever has it calls done.
func (t *turns) take(ctx context.Context, tenant string) (*taken, error) {
	own := t.want(tenant)
	if err := own.next.Acquire(ctx, 1); err != nil {
		t.leave(tenant, own)
		return nil, err
	}
	if err := t.all.Acquire(ctx, 1); err != nil {
		own.next.Release(1)
		t.leave(tenant, own)
		return nil, err
	}
	return &taken{of: t, tenant: tenant, own: own, ready: true}, nil
}

// enter has those of a tenant go on one after the other, so long apart, until ctx ends.
func (t *turns) enter(ctx context.Context, tenant string, apart time.Duration) error {
	turn, err := t.take(ctx, tenant)
	if err != nil {
		return err
	}
	defer turn.done()
	<-time.After(apart)
	return nil
}

// pass lets other tenants have their turns before the rest of this one, if any wait. If ctx ends
// meanwhile, the rest is none.
func (t *taken) pass(ctx context.Context) error {
	t.of.all.Release(1)
	err := t.of.all.Acquire(ctx, 1)
	t.ready = err == nil
	return err
}

// done ends the turn, once.
func (t *taken) done() {
	if t.over {
		return
	}
	t.over = true
	if t.ready {
		t.of.all.Release(1)
	}
	t.own.next.Release(1)
	t.of.leave(t.tenant, t.own)
}

func (t *turns) want(tenant string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tenants[tenant]
	if own == nil {
		own = &turn{next: semaphore.NewWeighted(1)}
		t.tenants[tenant] = own
	}
	own.wanted++
	return own
}

func (t *turns) leave(tenant string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.wanted--; own.wanted == 0 {
		delete(t.tenants, tenant)
	}
}
