package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
)

// countedLeases grants every lease, and renews it.
type countedLeases struct {
	leaseClient
	granted int
}

func (c *countedLeases) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	c.granted++
	return &pb.LeaseGrantResponse{}, nil
}

func (c *countedLeases) renew(context.Context, int64, bool) error { return nil }

// TestLeaseOfAnEarlierEntry: what is known of an entry says nothing of a later one under
// its lease, which another replica wrote.
func TestLeaseOfAnEarlierEntry(t *testing.T) {
	fake := &countedLeases{}
	p := newLeasePool(&Conn{leases: fake, renewer: fake})
	t.Cleanup(p.grants.Close)
	first := &lock.Entry{Tenant: "acme", TTL: time.Minute, Number: 7, Handle: 1}
	later := &lock.Entry{Tenant: "acme", TTL: time.Minute, Number: 8, Handle: 1}
	p.stands(first)
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
		"in the process":              {true, 1, 30 * time.Second, 15_360},
		"in the process, a short TTL": {true, 1, 2 * time.Second, 1024},
		"in the process, in all":      {true, 4, 30 * time.Second, 16_384},
		"in a cluster":                {false, 1, 30 * time.Second, 256},
		"in a cluster, in all":        {false, 100, 30 * time.Second, 16_384},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &countedLeases{}
			p := newLeasePool(&Conn{leases: fake, renewer: fake, local: c.local})
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
					p.idle[class][i].renewed = time.Now().Add(-c.ttl / 2)
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
					if kept++; time.Since(l.renewed) > c.ttl/3 {
						t.Fatal("it was not renewed")
					}
				}
			}
			if kept != c.kept || p.spare != 0 || fake.granted != 0 {
				t.Errorf("%d were kept, want %d; %d are counted when all are taken", kept, c.kept, p.spare)
			}
		})
	}
}
