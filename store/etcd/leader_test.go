package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
)

// forgetful is a leader that was just elected: it does not know a lease yet.
type forgetful struct {
	renewer
	left int // so many renewals are answered with a TTL of 0
}

func (f *forgetful) renew(ctx context.Context, id int64) error {
	if f.left > 0 {
		f.left--
		return errLeaseGone
	}
	return f.renewer.renew(ctx, id)
}

// TestLeaderThatDoesNotKnowALease: a renewal that is answered with a TTL of 0 is no
// proof that the entry is gone.
func TestLeaderThatDoesNotKnowALease(t *testing.T) {
	t.Parallel()
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	leader := &forgetful{renewer: conn.renewer, left: 3}
	conn.renewer = leader
	s, err := Open(t.Context(), conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	e, _, err := s.Enqueue(t.Context(), &lock.Entry{
		ID: "held", Tenant: "acme", Holder: "w", TTL: time.Minute,
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}}, EnqueuedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), e); err != nil || leader.left != 0 {
		t.Errorf("Renew of an entry that is there = %v", err)
	}
	leader.left = 1_000_000
	var unavailable *lock.Error
	if err := s.Renew(t.Context(), e); !errors.As(err, &unavailable) ||
		unavailable.Code != lock.StoreUnavailable {
		t.Errorf("Renew at a leader that never knows the lease = %v, want %s", err, lock.StoreUnavailable)
	}
	if err := s.Remove(t.Context(), e, lock.Released); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), e); !errors.Is(err, lock.Lost) {
		t.Errorf("Renew of an entry that is gone = %v, want %s", err, lock.Lost)
	}
}

// lateLeases grants a lease, and its answer is lost.
type lateLeases struct {
	leaseClient
	granted bool
}

func (l *lateLeases) LeaseGrant(
	_ context.Context, _ *pb.LeaseGrantRequest, _ ...grpc.CallOption,
) (*pb.LeaseGrantResponse, error) {
	if l.granted {
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	l.granted = true
	<-time.After(time.Second)
	return nil, rpctypes.ErrGRPCLeaderChanged
}

// TestGrantCountsFromItsFirstAttempt: a lease that is there already was granted by an
// attempt before, and runs since then.
func TestGrantCountsFromItsFirstAttempt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := &leasePool{conn: &Conn{leases: &lateLeases{}}}
		began := time.Now()
		l, err := p.grant(t.Context(), time.Minute)
		if err != nil || !l.renewed.Equal(began) || time.Since(began) < time.Second {
			t.Errorf(
				"granted %+v, %v; it counts from %v after the first attempt, want 0", l, err,
				l.renewed.Sub(began),
			)
		}
	})
}
