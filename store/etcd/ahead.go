package etcd

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// grantedTogether are how many leases are granted at once for a tenant that has taken more than manyGranted of them
	// within manyWithin and left none idle. Each that is granted between two writes has etcd's backend make a buffer of
	// 24 KB (txWriteBuffer, 3.7.3), which was 40 % of all that a server allocated; of those granted together the first one has.
	grantedTogether = 8
	manyGranted     = 8
	manyWithin      = time.Second
)

// granted are how many leases of a class were asked for since some time.
type granted struct {
	since time.Time
	n     int
	ahead bool // more are being granted than are needed
}

// grantLease grants a lease for e, and more for the next entries where there have been many.
func (p *leasePool) grantLease(ctx context.Context, e *lock.Entry, due time.Time) (_ lease, pending time.Duration, err error) {
	class := leaseClass{e.Tenant, p.seconds(e.TTL)}
	if p.takesMany(class, time.Now()) {
		var all sync.WaitGroup
		for range grantedTogether - 1 {
			all.Go(func() { p.grantAhead(ctx, class, e, due) })
		}
		defer p.grantedAhead(class)
		defer all.Wait()
	}
	w := p.grantFor(ctx, e, due)
	l, err := p.grants.Do(ctx, w)
	return l, w.Waited(), err
}

// takesMany counts a lease that is needed, and reports whether more are to be granted with it: grantedAhead is to be called
// then.
func (p *leasePool) takesMany(class leaseClass, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.granted[class]
	if now.Sub(g.since) > manyWithin {
		g.since, g.n = now, 0
	}
	g.n++
	many := g.n > manyGranted && !g.ahead
	g.ahead = g.ahead || many
	p.granted[class] = g
	return many
}

func (p *leasePool) grantedAhead(class leaseClass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.granted[class]
	g.ahead = false
	p.granted[class] = g
}

// grantAhead grants a lease that is idle then. One that could not be granted is not missed.
func (p *leasePool) grantAhead(ctx context.Context, class leaseClass, e *lock.Entry, due time.Time) {
	w := p.grantFor(ctx, e, due)
	w.Keys = nil // no entry waits for it
	l, err := p.grants.Do(ctx, w)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.idle = time.Now()
	p.add(class, l)
}

// add has a lease be idle, if there is room. The caller holds mu.
func (p *leasePool) add(class leaseClass, l lease) {
	if p.hasRoom(class) {
		p.idle[class] = append(p.idle[class], l)
		p.count(class, 1)
	}
}
