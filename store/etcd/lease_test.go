package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// countedLeases grants every lease, and renews it.
type countedLeases struct {
	leaseClient
	granted, renewed int
}

func (c *countedLeases) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	c.granted++
	return &pb.LeaseGrantResponse{}, nil
}

func (c *countedLeases) renew(context.Context, int64, bool) error {
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
	if p.spare != 0 || len(p.spent) != 1 {
		t.Errorf("%d leases are idle and %d to be ended, want that of the later entry to be ended", p.spare, len(p.spent))
	}
	p.left(first, lock.Revoked)
	if p.spare != 1 {
		t.Errorf("%d leases are idle, want that of the first entry", p.spare)
	}
}

// livingLeases notes of each renewal whether its lease was said to live.
type livingLeases struct {
	countedLeases
	lives []bool
}

func (l *livingLeases) renew(_ context.Context, _ int64, lives bool) error {
	l.lives = append(l.lives, lives)
	return nil
}

// TestLeaseOfAnEarlierVersion: it has no slack, so that nobody is sure that it lives when its TTL is nearly over. To
// ask etcd for one that has ended could take long.
func TestLeaseOfAnEarlierVersion(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &livingLeases{}
		p := newLeasePool(&Conn{leases: fake, renewer: fake, local: true, slack: localSlack})
		defer p.grants.Close()
		e := &lock.Entry{Tenant: "acme", TTL: 10 * time.Second, Number: 7, Handle: 1}
		p.refreshed(e.Handle, time.Now())
		for _, after := range []time.Duration{e.TTL / 2, e.TTL * 19 / 20} {
			<-time.After(after)
			p.give(e.Tenant, e.TTL, e.Handle)
			if _, _, err := p.take(t.Context(), e, time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		if len(fake.lives) != 2 || !fake.lives[0] || fake.lives[1] {
			t.Errorf("it is said to live: %v, want only after half of its TTL", fake.lives)
		}
	})
}

// TestIdleLeasesAreBounded: as many leases are kept for the next burst as it costs little
// to renew, and no more of all tenants together.
func TestIdleLeasesAreBounded(t *testing.T) {
	const burst = 20_000
	for name, c := range map[string]struct {
		local   bool
		tenants int
		ttl     time.Duration
		kept    int
	}{
		"in the process":              {true, 1, 30 * time.Second, 8192},
		"in the process, a short TTL": {true, 1, 2 * time.Second, 1024},
		"in the process, in all":      {true, 4, 30 * time.Second, 13_108},
		"in a cluster":                {false, 1, 30 * time.Second, 256},
		"in a cluster, in all":        {false, 100, 30 * time.Second, 16_222},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				fake := &countedLeases{}
				conn := &Conn{leases: fake, renewer: fake, local: c.local, slack: remoteSlack}
				if c.local {
					conn.slack = localSlack
				}
				p := newLeasePool(conn)
				t.Cleanup(p.grants.Close)
				for i := range burst {
					p.give(fmt.Sprint(i%c.tenants), c.ttl, int64(i))
				}
				for _, l := range p.inUse {
					t.Fatalf("a lease is in use since %v", l)
				}
				p.mu.Lock()
				for class, idle := range p.idle {
					for i := range idle {
						p.idle[class][i].renewed = time.Now().Add(-p.seconds(c.ttl) / 2)
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
						if kept++; time.Since(l.renewed) > p.seconds(c.ttl)/3 {
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

// TestIdleLeasesOfManyTTLs: a tenant that takes ever other TTLs leaves room for the leases of others.
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
			t.Errorf("%d leases of one tenant are idle, and %d of another, want half of all at most, and 100", p.of["acme"], p.of["bolt"])
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

// TestLeaseOfWhatExpired: where entries are ended before their leases, those are kept, whatever their TTL; and who is
// given one has the whole of it, as what was granted by an earlier version may be a second shorter.
func TestLeaseOfWhatExpired(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, 10 * time.Second, time.Minute, time.Hour} {
		t.Run(ttl.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				fake := &countedLeases{}
				p := newLeasePool(&Conn{leases: fake, renewer: fake, local: true, slack: localSlack})
				defer p.grants.Close()
				e := &lock.Entry{Tenant: "acme", TTL: ttl, Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}}, Number: 7}
				l, _, err := p.take(t.Context(), e, time.Now().Add(time.Second))
				if err != nil {
					t.Fatal(err)
				}
				e.Handle = l.id
				p.confirm(e)
				<-time.After(ttl + localSlack/2)
				p.left(e, lock.Expired)
				<-time.After(idleInterval)
				if p.maintain(t.Context()); p.spare != 1 || fake.renewed != 1 {
					t.Fatalf("%d are kept, and were renewed %d times", p.spare, fake.renewed)
				}
				<-time.After(localSlack / 2)
				again, _, err := p.take(t.Context(), e, time.Now().Add(time.Second))
				if err != nil || again.id != l.id || fake.granted != 1 || fake.renewed != 2 {
					t.Errorf("lease %x, %v; %d were granted, and renewed %d times", again.id, err, fake.granted, fake.renewed)
				}
				p.confirm(e)
				<-time.After(ttl + localSlack*19/20)
				p.left(e, lock.Expired)
				if p.maintain(t.Context()); p.spare != 0 || fake.renewed != 2 {
					t.Errorf("%d are kept that have as good as ended", p.spare)
				}
			})
		})
	}
}

// slow takes a second for each renewal.
type slow struct {
	countedLeases
	asked int
}

func (s *slow) renew(ctx context.Context, _ int64, _ bool) error {
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

func (s stuck) renew(ctx context.Context, id int64, lives bool) error {
	if lives {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.renewer.renew(ctx, id, lives)
}

// TestEndsDoNotWaitForIdleLeases: an expiry is put down, so that its key is used up, while
// the renewals of many idle leases are not answered. It is etcd that ends the entry, as in a cluster.
func TestEndsDoNotWaitForIdleLeases(t *testing.T) {
	t.Parallel()
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) { c.renewer, c.lifetimes, c.slack = stuck{c.renewer}, nil, 0 })
	s.tasks.Go(func() { s.Watch(s.closing, &ends{left: make(chan store.Change, 1)}) })
	for i := range int64(100) {
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

// TestSlowRenewalOfAnIdleLease: where etcd does not answer a renewal soon, an entry is given a new lease,
// and the idle one stays for others.
func TestSlowRenewalOfAnIdleLease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &slow{}
		p := newLeasePool(&Conn{leases: fake, renewer: fake, slack: time.Second})
		defer p.grants.Close()
		e := &lock.Entry{Tenant: "acme", TTL: 30 * time.Second, Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}}}
		p.refreshed(1, time.Now())
		p.give(e.Tenant, e.TTL, 1)
		<-time.After(10 * time.Second)
		began := time.Now()
		l, _, err := p.take(t.Context(), e, began.Add(4*time.Second))
		if took := time.Since(began); err != nil || l.id == 1 || fake.granted != 1 || took > renewalTimeout || p.spare != 1 {
			t.Errorf("lease %d after %v, %v; %d granted, %d idle", l.id, took, err, fake.granted, p.spare)
		}
		soon, cancel := context.WithTimeout(t.Context(), renewalTimeout/2)
		defer cancel()
		if _, _, err := p.take(soon, e, began.Add(4*time.Second)); err == nil || fake.granted != 1 {
			t.Errorf("for who does not wait so long: %v, %d granted", err, fake.granted)
		}
	})
}
