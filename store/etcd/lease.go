package etcd

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// Bounds of the pool of idle leases.
const (
	maxIdlePerClass = 256
	maxIdle         = 16384 // of all classes
	idleLifetime    = 5 * time.Minute

	// idleInterval is the time between two checks of the idle leases.
	idleInterval = 200 * time.Millisecond

	// dropsAtOnce bounds the unused leases that each check lets expire, because etcd flushes its
	// data file for each.
	dropsAtOnce = 10

	// renewalTimeout bounds the renewal of an idle lease, before a new one is granted instead. While
	// etcd ends leases by the thousand it answers renewals after a second or more, and writes
	// sooner.
	renewalTimeout = 300 * time.Millisecond

	// maxGrants bounds the concurrent grants of leases. Each is a write to etcd, which rejects all
	// writes when too many are in flight.
	maxGrants = 64

	// forgetInUse bounds how long the pool keeps a lease whose entry never came back.
	forgetInUse = 10 * time.Minute
)

// lease is the pool's record of an etcd lease.
type lease struct {
	id int64
	// no later than the last acknowledged grant or renewal was sent; zero if unknown
	renewed time.Time
	idle    time.Time // since when it has been idle
}

// use is the pool's record of a lease that carries an entry, or will soon.
type use struct {
	renewed   time.Time // no later than this replica's last renewal was sent
	confirmed uint64    // the number of the entry that this replica's own call knows to stand under it
}

// leaseClass is what interchangeable leases share. Tenants do not share leases, because a late
// renewal of a released entry could otherwise prolong another tenant's entry.
type leaseClass struct {
	tenant string
	ttl    time.Duration // whole seconds
}

// lapsed reports whether a lease of that age counts as expired: a renewal could block until etcd
// revokes it.
func (c leaseClass) lapsed(age time.Duration) bool { return age > c.ttl-c.ttl/10 }

// leasePool keeps the leases of released entries for the next entries of the same tenant and TTL,
// so that an acquire costs one write and not two. It renews idle leases for a while, which etcd
// answers from memory, and then lets them expire.
type leasePool struct {
	conn   *Conn
	grants *batch.Committer[grant, lease]
	longer func(granted time.Duration) // receives the least TTL that etcd grants, if that is too long

	mu    sync.Mutex
	idle  map[leaseClass][]lease // the most recently used at the end
	spare int                    // of all classes
	of    map[string]int         // by tenant
	inUse map[int64]use
	swept time.Time // when inUse was last swept
}

// grant is a request for a new lease.
type grant struct {
	ctx context.Context
	ttl time.Duration
}

func newLeasePool(conn *Conn) *leasePool {
	p := &leasePool{
		conn: conn, idle: map[leaseClass][]lease{}, of: map[string]int{}, inUse: map[int64]use{},
		longer: func(time.Duration) {},
	}
	// Not Inline: a grant doubles the stack of its goroutine, which a waiting request would keep.
	one := batch.Limits{Ops: 1, Bytes: 1, InFlight: maxGrants, Most: maxGrants}
	p.grants = batch.NewCommitter(one, p.send, nil)
	return p
}

// send grants one lease.
func (p *leasePool) send(batch []*batch.Write[grant, lease]) [][]*batch.Write[grant, lease] {
	for _, w := range batch {
		w.Settle(p.grant(w.Payload.ctx, w.Payload.ttl))
	}
	return nil
}

// seconds returns the lease TTL that covers ttl.
func (p *leasePool) seconds(ttl time.Duration) time.Duration {
	whole := (ttl + time.Second - 1).Truncate(time.Second)
	return whole + p.conn.slack
}

// take returns a lease for e that lives for at least its TTL from now on. If one has to be
// granted, e waits behind other requests for the same locks; pending is for how long. The grant
// is due then, unless others are being granted.
func (p *leasePool) take(
	ctx context.Context, e *lock.Entry, due time.Time,
) (l lease, pending time.Duration, err error) {
	l, pending, err = p.fresh(ctx, e, due)
	if err == nil {
		p.refreshed(l.id, l.renewed)
	}
	return l, pending, err
}

func (p *leasePool) fresh(
	ctx context.Context, e *lock.Entry, due time.Time,
) (_ lease, pending time.Duration, err error) {
	l, found, err := p.takeIdle(ctx, e, due)
	if found || err != nil {
		return l, 0, err
	}
	w := p.grantFor(ctx, e, due)
	l, err = p.grants.Do(ctx, w)
	return l, w.Waited(), err
}

// takeIdle returns an idle lease for e, unless there is none, or its renewal takes too long.
func (p *leasePool) takeIdle(
	ctx context.Context, e *lock.Entry, due time.Time,
) (l lease, found bool, err error) {
	class := leaseClass{e.Tenant, p.seconds(e.TTL)}
	now := time.Now()
	for l, found = p.pop(class); found; l, found = p.pop(class) {
		age := now.Sub(l.renewed)
		if age < class.ttl-e.TTL {
			return l, true, nil
		}
		known := !l.renewed.IsZero()
		if known && class.lapsed(age) {
			continue
		}
		err := p.renew(ctx, l.id, due)
		switch {
		case err == nil:
			l.renewed = now
			return l, true, nil
		case isLeaseNotFound(err):
			continue
		case ctx.Err() != nil || time.Since(now) < renewalTimeout || !time.Now().Before(due):
			return lease{}, false, err
		case known:
			p.put(class, []lease{l})
		}
		return lease{}, false, nil
	}
	return lease{}, false, nil
}

// renew waits until the lease is due, and for renewalTimeout at most.
func (p *leasePool) renew(ctx context.Context, id int64, due time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, renewalTimeout)
	defer stop()
	return p.conn.renewer.renew(ctx, id)
}

// grantFor requests a lease. The time for it was checked together with its write.
func (p *leasePool) grantFor(
	ctx context.Context, e *lock.Entry, due time.Time,
) *batch.Write[grant, lease] {
	w := &batch.Write[grant, lease]{
		Tenant: e.Tenant, Ops: 1, Bytes: 1, Must: true, Due: due, Gone: store.Gone(ctx),
		Payload: grant{ctx, p.seconds(e.TTL)},
	}
	for _, c := range e.Claims {
		w.Keys = append(w.Keys, e.Tenant+"/"+c.Name)
	}
	return w
}

// refreshed records that a call from the given time renewed the lease of an entry.
func (p *leasePool) refreshed(id int64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.inUse[id]
	u.renewed = at
	p.inUse[id] = u
}

// confirm records that the call which wrote e knows that e stands under its lease, and so will
// not revoke that lease.
func (p *leasePool) confirm(e *lock.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.inUse[e.Handle]
	u.confirmed = e.Number
	p.inUse[e.Handle] = u
}

// left takes back the lease of a removed entry, and reports whether it can be reused. It can only
// if no remaining call may revoke it. A call revokes the lease if it learns late, perhaps at
// another replica, that its write does not stand. An entry under the lease would then be lost.
func (p *leasePool) left(e *lock.Entry, why lock.Reason) (again bool) {
	p.mu.Lock()
	confirmed := p.inUse[e.Handle].confirmed == e.Number
	p.mu.Unlock()
	// Without a key there was one call, and it was over before its client could release.
	if confirmed || why == lock.Released && !e.Resumable() {
		p.give(e.Tenant, e.TTL, e.Handle)
		return true
	}
	return false
}

// give adds an empty lease to the pool that no other caller may revoke. Another replica may have
// renewed it last.
func (p *leasePool) give(tenant string, ttl time.Duration, id int64) {
	class := leaseClass{tenant, p.seconds(ttl)}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := lease{id: id, renewed: p.inUse[id].renewed, idle: time.Now()}
	delete(p.inUse, id)
	if p.hasRoom(class) {
		p.idle[class] = append(p.idle[class], l)
		p.count(class, 1)
	}
}

// count counts idle leases. The caller holds mu.
func (p *leasePool) count(class leaseClass, n int) {
	p.spare += n
	if p.of[class.tenant] += n; p.of[class.tenant] == 0 {
		delete(p.of, class.tenant)
	}
}

// hasRoom reports whether one more lease may be idle. A tenant may not have more idle leases than
// there are free slots. The caller holds mu.
func (p *leasePool) hasRoom(class leaseClass) bool {
	return p.of[class.tenant] < maxIdle-p.spare && len(p.idle[class]) < maxIdlePerClass
}

// revoke ends a lease and everything written under it; later writes under it fail. Without an
// error it is acknowledged.
func (p *leasePool) revoke(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := p.conn.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id})
	if err != nil && !isLeaseNotFound(err) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inUse, id)
	return nil
}

func (p *leasePool) pop(class leaseClass) (lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.idle[class]
	if len(free) == 0 {
		return lease{}, false
	}
	l := free[len(free)-1]
	p.idle[class] = free[:len(free)-1]
	p.count(class, -1)
	return l, true
}

// grant makes a new lease under an id that the caller chooses. If the id exists, it is from this
// call's earlier attempt: 63 random bits do not collide.
func (p *leasePool) grant(ctx context.Context, ttl time.Duration) (lease, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	// etcd may have run the first attempt, and counts from there.
	l := lease{id: rand.Int64() | 1, renewed: time.Now()}
	for {
		err := p.tryGrant(ctx, l.id, ttl)
		if err == nil || isLeaseExists(err) {
			return l, nil
		}
		if !isUnavailable(err) || store.Pause(ctx, 50*time.Millisecond) != nil {
			return lease{}, err
		}
	}
}

func (p *leasePool) tryGrant(ctx context.Context, id int64, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	r := &pb.LeaseGrantRequest{ID: id, TTL: int64(ttl / time.Second)}
	granted, err := p.conn.leases.LeaseGrant(ctx, r)
	if granted.GetTTL() > r.TTL {
		p.longer(time.Duration(granted.TTL) * time.Second)
	}
	return err
}

// maintain renews the idle leases that need it and drops those that were unused for a while.
func (p *leasePool) maintain(ctx context.Context) {
	now := time.Now()
	for class, due := range p.due(now) {
		renewed := due[:0]
		for _, l := range due {
			if p.renewIdle(ctx, class, &l) == nil {
				renewed = append(renewed, l)
			}
		}
		p.put(class, renewed)
	}
}

// due removes the idle leases from the pool whose last renewal is a third of their TTL ago. It
// drops those that were idle for too long, a few at a time.
func (p *leasePool) due(now time.Time) map[leaseClass][]lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	out, dropped := map[leaseClass][]lease{}, 0
	for class, free := range p.idle {
		kept := free[:0]
		for _, l := range free {
			age := now.Sub(l.renewed)
			switch {
			case class.lapsed(age):
			case now.Sub(l.idle) > idleLifetime && dropped < dropsAtOnce:
				dropped++
			case age > class.ttl/3:
				out[class] = append(out[class], l)
			default:
				kept = append(kept, l)
			}
		}
		p.count(class, len(kept)-len(free))
		if p.idle[class] = kept; len(kept) == 0 {
			delete(p.idle, class)
		}
	}
	return out
}

// sweep drops entries that never came back. There may be very many, so it runs rarely. The caller
// holds mu.
func (p *leasePool) sweep(now time.Time) {
	if now.Sub(p.swept) < forgetInUse/10 {
		return
	}
	p.swept = now
	for id, u := range p.inUse {
		if now.Sub(u.renewed) > forgetInUse {
			delete(p.inUse, id)
		}
	}
}

// put returns leases to the least recently used end of the pool.
func (p *leasePool) put(class leaseClass, renewed []lease) {
	if len(renewed) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[class] = append(renewed, p.idle[class]...)
	p.count(class, len(renewed))
}

// renewIdle renews a lease that was due when others were renewed, which may be long ago.
func (p *leasePool) renewIdle(ctx context.Context, class leaseClass, l *lease) error {
	age := time.Since(l.renewed)
	if class.lapsed(age) {
		return errLeaseGone
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	l.renewed = time.Now()
	return p.conn.renewer.renew(ctx, l.id)
}
