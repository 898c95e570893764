package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// countedLeases grants every lease, and renews it.
type countedLeases struct {
	leaseClient
	granted, renewed int
}

func (c *countedLeases) LeaseGrant(
	_ context.Context, _ *pb.LeaseGrantRequest, _ ...grpc.CallOption,
) (*pb.LeaseGrantResponse, error) {
	c.granted++
	return &pb.LeaseGrantResponse{}, nil
}

func (c *countedLeases) renew(context.Context, int64) error {
	c.renewed++
	return nil
}

// TestLeaseOfAnEarlierEntry: what is known of an entry says nothing of a later one under
// its lease, which another replica wrote.
func TestLeaseOfAnEarlierEntry(t *testing.T) {
	fake := &countedLeases{}
	p := newLeasePool(&Conn{leases: fake, renewer: fake})
	t.Cleanup(p.grants.Close)
	first := &lock.Entry{Tenant: "acme", TTL: time.Minute, Number: 7, Handle: 1}
	later := &lock.Entry{Tenant: "acme", TTL: time.Minute, Number: 8, Handle: 1}
	p.confirm(first)
	p.refreshed(later.Handle, time.Now())
	p.left(later, lock.Revoked)
	if p.spare != 0 {
		t.Errorf("%d leases are idle, want that of the later entry to be ended", p.spare)
	}
	p.left(first, lock.Revoked)
	if p.spare != 1 {
		t.Errorf("%d leases are idle, want that of the first entry", p.spare)
	}
}

// TestIdleLeasesAreBounded: the pool keeps as many leases for the next burst as it can renew
// cheaply.
func TestIdleLeasesAreBounded(t *testing.T) {
	const burst, ttl = 20_000, 30 * time.Second
	for name, c := range map[string]struct {
		tenants int
		kept    int
	}{
		"of one tenant": {1, 256},
		"in all":        {100, 16_222},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				fake := &countedLeases{}
				p := newLeasePool(&Conn{leases: fake, renewer: fake, slack: leaseSlack})
				t.Cleanup(p.grants.Close)
				for i := range burst {
					p.give(fmt.Sprint(i%c.tenants), ttl, int64(i))
				}
				for _, l := range p.inUse {
					t.Fatalf("a lease is in use since %v", l)
				}
				p.mu.Lock()
				for class, idle := range p.idle {
					for i := range idle {
						p.idle[class][i].renewed = time.Now().Add(-p.seconds(ttl) / 2)
					}
				}
				p.mu.Unlock()
				p.maintain(t.Context()) // takes them out, and puts them back
				if p.spare != c.kept {
					t.Errorf("%d are counted, want %d", p.spare, c.kept)
				}
				kept := 0
				for class := range p.idle {
					for l, ok := p.pop(class); ok; l, ok = p.pop(class) {
						if kept++; time.Since(l.renewed) > p.seconds(ttl)/3 {
							t.Fatal("it was not renewed")
						}
					}
				}
				if kept != c.kept || p.spare != 0 || fake.granted != 0 {
					t.Errorf("%d were kept, want %d; %d are counted when all are taken", kept, c.kept, p.spare)
				}
			})
		})
	}
}

// TestIdleLeasesOfManyTTLs: a tenant that takes ever other TTLs leaves room for the leases of
// others.
func TestIdleLeasesOfManyTTLs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &countedLeases{}
		p := newLeasePool(&Conn{leases: fake, renewer: fake, local: true})
		t.Cleanup(p.grants.Close)
		for i := range 2 * maxIdle {
			p.give("acme", time.Duration(i%3600+1)*time.Second, int64(i))
		}
		for i := range 100 {
			p.give("bolt", time.Minute, int64(2*maxIdle+i))
		}
		if p.of["acme"] > maxIdle/2 || p.of["bolt"] != 100 {
			t.Errorf(
				"%d leases of one tenant are idle, and %d of another, want half of all at most, and 100",
				p.of["acme"], p.of["bolt"],
			)
		}
		for range 100 {
			if _, ok := p.pop(leaseClass{"bolt", time.Minute}); !ok {
				t.Fatal("a lease is not idle that was given")
			}
		}
		if n, known := p.of["bolt"]; known {
			t.Errorf("%d are counted when none is idle", n)
		}
	})
}

// TestIdleLeasesAreDroppedSlowly: etcd flushes its data file for each that ends.
func TestIdleLeasesAreDroppedSlowly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &countedLeases{}
		p := newLeasePool(&Conn{leases: fake, renewer: fake})
		t.Cleanup(p.grants.Close)
		const n = 100
		for i := range n {
			p.give("acme", time.Hour, int64(i))
		}
		for class, idle := range p.idle {
			for i := range idle {
				p.idle[class][i].renewed = time.Now()
			}
		}
		<-time.After(idleLifetime + time.Second)
		for looks := 1; looks <= n/dropsAtOnce; looks++ {
			if p.maintain(t.Context()); p.spare != n-looks*dropsAtOnce {
				t.Fatalf("%d are idle after %d looks", p.spare, looks)
			}
		}
	})
}

// slow takes a second for each renewal.
type slow struct {
	countedLeases
	asked int
}

func (s *slow) renew(ctx context.Context, _ int64) error {
	s.asked++
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestLapsedIdleLeaseIsNotRenewed: idle leases are renewed one after the other. One that
// has lapsed before its turn is not asked for: etcd answers that when it has revoked it,
// and all behind it wait for as long.
func TestLapsedIdleLeaseIsNotRenewed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &slow{}
		p := newLeasePool(&Conn{leases: fake, renewer: fake, slack: time.Second})
		defer p.grants.Close()
		for i := range int64(5) {
			p.refreshed(i, time.Now())
			p.give("acme", 2*time.Second, i)
		}
		<-time.After(1100 * time.Millisecond)
		p.maintain(t.Context()) // the first at 1.1 s of 3 s, the second at 2.1 s
		if fake.asked != 2 || p.spare != 2 {
			t.Errorf("%d were asked for and %d are kept, want 2", fake.asked, p.spare)
		}
	})
}

// stuck is a renewer that does not answer for leases that are idle.
type stuck struct{ renewer }

const idleIDs = 100 // the leases that are idle have the ids below

func (s stuck) renew(ctx context.Context, id int64) error {
	if id < idleIDs {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.renewer.renew(ctx, id)
}

// TestEndsDoNotWaitForIdleLeases: an expiry is put down, so that its key is used up, while
// the renewals of many idle leases are not answered.
func TestEndsDoNotWaitForIdleLeases(t *testing.T) {
	t.Parallel()
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) { c.renewer = stuck{c.renewer} })
	s.tasks.Go(func() { s.Watch(s.closing, &leaving{left: make(chan store.Change, 1)}) })
	for i := range int64(idleIDs) {
		s.leases.refreshed(i, time.Now().Add(-time.Hour/2))
		s.leases.give("acme", time.Hour, i)
	}
	e := reusable("expires", true)
	e.TTL = MinTTL
	s.mustEnqueue(t, e)
	soon(t, "its key is used up", func() bool {
		m, err := s.readMark(t.Context(), e)
		return err == nil && m != nil && m.Reason == lock.Expired
	})
}

// TestSlowRenewalOfAnIdleLease: where etcd does not answer a renewal soon, an entry is given a new
// lease, and the idle one stays for others.
func TestSlowRenewalOfAnIdleLease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &slow{}
		p := newLeasePool(&Conn{leases: fake, renewer: fake, slack: time.Second})
		defer p.grants.Close()
		e := &lock.Entry{
			Tenant: "acme", TTL: 30 * time.Second, Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
		}
		p.refreshed(1, time.Now())
		p.give(e.Tenant, e.TTL, 1)
		<-time.After(10 * time.Second)
		began := time.Now()
		l, _, err := p.take(t.Context(), e, began.Add(4*time.Second))
		if took := time.Since(began); err != nil || l.id == 1 || fake.granted != 1 ||
			took > renewalTimeout || p.spare != 1 {
			t.Errorf("lease %d after %v, %v; %d granted, %d idle", l.id, took, err, fake.granted, p.spare)
		}
		soon, cancel := context.WithTimeout(t.Context(), renewalTimeout/2)
		defer cancel()
		if _, _, err := p.take(soon, e, began.Add(4*time.Second)); err == nil || fake.granted != 1 {
			t.Errorf("for who does not wait so long: %v, %d granted", err, fake.granted)
		}
	})
}

// TestRemainingIsNoMoreThanPromised: the lease of an entry lasts longer than its TTL, which others
// do not see.
func TestRemainingIsNoMoreThanPromised(t *testing.T) {
	t.Parallel()
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	e := testEntry("a", "01JABCDEFG000000000000000")
	e.TTL = 10 * time.Second
	placed, promised := s.mustEnqueue(t, e), time.Now().Add(e.TTL)
	for range 100 {
		left, err := s.Remaining(t.Context(), placed)
		if now := time.Now(); err != nil || now.Add(left).After(promised) {
			t.Fatalf("it lasts %v, %v, and %v were promised", left, err, promised.Sub(now))
		}
	}
}
