package etcd

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// slowLeases takes a millisecond for each grant, after the first ones of which it fails, if any.
type slowLeases struct {
	countedLeases
	mu   sync.Mutex
	good int // grants that succeed; 0 is all
}

func (s *slowLeases) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	s.mu.Lock()
	s.granted++
	n := s.granted
	s.mu.Unlock()
	<-time.After(time.Millisecond)
	if s.good > 0 && n > s.good {
		return nil, errors.New("no more")
	}
	return &pb.LeaseGrantResponse{}, nil
}

// poolOver is a pool of a store in this process.
func poolOver(t *testing.T, s *slowLeases) *leasePool {
	p := newLeasePool(&Conn{leases: s, renewer: s, local: true, slack: localSlack})
	t.Cleanup(p.grants.Close)
	return p
}

// needs takes a lease that does not come back.
func (p *leasePool) needs(t *testing.T, tenant string) {
	t.Helper()
	e := &lock.Entry{Tenant: tenant, TTL: time.Minute, Claims: []lock.Claim{{Name: "a"}}}
	if _, _, err := p.take(t.Context(), e, time.Now().Add(time.Second)); err != nil {
		t.Error(err)
	}
}

// TestManyAreGrantedTogether: of a tenant that takes many, and of no other.
func TestManyAreGrantedTogether(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &slowLeases{}
		p := poolOver(t, fake)
		began := time.Now()
		for range manyGranted + 10*grantedTogether {
			p.needs(t, "acme")
		}
		took, one := time.Since(began), time.Millisecond
		if took != (manyGranted+10)*one || fake.granted != manyGranted+10*grantedTogether || p.spare != 0 {
			t.Errorf("%d were granted in %v, and %d are idle", fake.granted, took, p.spare)
		}
		p.needs(t, "other")
		if fake.granted != manyGranted+10*grantedTogether+1 {
			t.Error("more than one was granted for another tenant")
		}
	})
}

// TestFewAreGrantedAlone: nobody would take those that were granted with them.
func TestFewAreGrantedAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &slowLeases{}
		p := poolOver(t, fake)
		for range 5 * manyGranted {
			p.needs(t, "acme")
			<-time.After(manyWithin / manyGranted)
		}
		if fake.granted != 5*manyGranted {
			t.Errorf("%d were granted for %d", fake.granted, 5*manyGranted)
		}
	})
}

// TestGrantedTogetherOnce: those who come meanwhile have one granted each.
func TestGrantedTogetherOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &slowLeases{}
		p := poolOver(t, fake)
		var all sync.WaitGroup
		for range 5 * manyGranted {
			all.Go(func() { p.needs(t, "acme") })
		}
		all.Wait()
		if want := 5*manyGranted + grantedTogether - 1; fake.granted != want || p.spare != grantedTogether-1 {
			t.Errorf("%d were granted, and %d are idle, want %d and %d", fake.granted, p.spare, want, grantedTogether-1)
		}
		<-time.After(time.Minute)
		p.maintain(t.Context())
		if len(p.granted) != 0 {
			t.Error("a tenant of the past is kept")
		}
	})
}

// TestNotGrantedAhead: what nobody needs yet is nobody's failure.
func TestNotGrantedAhead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &slowLeases{}
		p := poolOver(t, fake)
		for range manyGranted {
			p.needs(t, "acme")
		}
		fake.good = manyGranted + grantedTogether/2
		failed := 0
		for range grantedTogether {
			e := &lock.Entry{Tenant: "acme", TTL: time.Minute}
			if _, _, err := p.take(t.Context(), e, time.Now().Add(time.Second)); err != nil {
				failed++
			}
		}
		if failed < grantedTogether/2-1 || failed > grantedTogether/2+1 {
			t.Errorf("%d of %d failed", failed, grantedTogether)
		}
		fake.good = 0
		p.needs(t, "acme")
	})
}
