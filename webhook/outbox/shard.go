package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
)

// shard is a part of the work, that one replica at a time does.
type shard struct {
	*Outbox
	name string // of its lock, too
	owes *atomic.Pointer[Backlog]
}

const (
	// shardTTL is how long the lease of a shard's lock lasts, and shardWait how long a
	// replica waits for it before it looks again whether the shard is still its share.
	shardTTL  = 6 * time.Second
	shardWait = 10 * time.Second
)

// run does the shard's work while that is this replica's share.
func (s *shard) run(ctx context.Context) {
	for ctx.Err() == nil {
		if sharing := s.Sharing(); !sharing.Does(s.name) {
			store.Await(ctx, sharing.Changed, shardTTL/3)
			continue
		}
		s.hold(ctx)
	}
}

// hold takes the shard's lock and does its work until that is lost, or another replica's
// share.
func (s *shard) hold(ctx context.Context) {
	sent := time.Now()
	grant, err := s.Locks.Acquire(ctx, service.AcquireRequest{
		Tenant: lock.OwnTenant, Claims: []lock.Claim{{Name: s.name, Mode: lock.Exclusive}},
		Holder: s.Self, TTL: shardTTL, Wait: shardWait,
	})
	if err != nil || !grant.Held {
		if grant != nil { // the entry may still be queued, and would hold the shard for its TTL
			s.release(ctx, grant)
		}
		if !errors.Is(err, lock.TimedOut) {
			_ = store.Pause(ctx, retryPause)
		}
		return
	}
	s.Logger.Info("this replica sends webhooks", "shard", s.name, "fence", grant.Entry.Number)
	owned, lost := context.WithCancel(ctx)
	w := newOwner(s, grant.Entry.Number)
	w.out.lease.renewed(sent)
	if !w.out.lease.holds() && errors.Is(s.renew(ctx, grant, w.out.lease), lock.Lost) {
		lost()
		return // it was answered late, or the lock waited for
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { defer lost(); s.keep(owned, grant, w.out.lease) })
	w.run(owned)
	lost()
	keeping.Wait()
	s.release(ctx, grant)
}

// keep renews the lock until it is lost, or the shard another replica's share. A store that
// cannot be reached is no loss: a replica that took the lock meanwhile has changed the cursor.
func (s *shard) keep(ctx context.Context, g *service.Grant, l *lease) {
	for {
		sharing := s.Sharing()
		if !sharing.Does(s.name) {
			return
		}
		if store.Await(ctx, sharing.Changed, shardTTL/3); ctx.Err() != nil {
			return
		}
		if errors.Is(s.renew(ctx, g, l), lock.Lost) {
			s.Logger.Warn("another replica sends these webhooks now", "shard", s.name)
			return
		}
	}
}

// renew renews the lock once. The lease lasts from when that was sent.
func (s *shard) renew(ctx context.Context, g *service.Grant, l *lease) error {
	soon, cancel := context.WithTimeout(ctx, shardTTL/3)
	defer cancel()
	sent := time.Now()
	_, err := s.Entries.Renew(soon, s.request(g))
	if err == nil {
		l.renewed(sent)
	}
	return err
}

func (s *shard) release(ctx context.Context, g *service.Grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := s.Entries.Release(ctx, s.request(g)); err != nil && !errors.Is(err, lock.Lost) {
		s.Logger.Debug("the lock of a shard was not released, and ends with its lease",
			"shard", s.name, "error", err)
	}
}

func (s *shard) request(g *service.Grant) service.TokenRequest {
	return service.TokenRequest{Tenant: lock.OwnTenant, Name: s.name, Token: g.Token}
}

// lease is how long a shard's lock is surely this replica's: by its own clock, from when it sent
// the acquire or renewal that was answered last. After that an owner reads no events and makes no
// new records: another one may have the shard, and does not know of them.
type lease struct{ until atomic.Pointer[time.Time] }

// leaseMargin is for clocks that run at different rates, and for writes that arrive after the
// lease.
const leaseMargin = time.Second

func (l *lease) renewed(sent time.Time) {
	until := sent.Add(shardTTL - leaseMargin)
	l.until.Store(&until)
}

// holds reports whether no other replica can have the lock now.
func (l *lease) holds() bool { return time.Now().Before(*l.until.Load()) }
