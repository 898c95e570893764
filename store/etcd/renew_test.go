package etcd

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
)

// keepAlives is a keepalive stream. One that is frozen takes renewals and answers nothing.
type keepAlives struct {
	ctx     context.Context
	frozen  bool
	answers chan int64
}

func (k *keepAlives) Send(r *pb.LeaseKeepAliveRequest) error {
	if !k.frozen {
		k.answers <- r.ID
	}
	return nil
}

func (k *keepAlives) Recv() (*pb.LeaseKeepAliveResponse, error) {
	select {
	case id := <-k.answers:
		return &pb.LeaseKeepAliveResponse{ID: id, TTL: 10}, nil
	case <-k.ctx.Done():
		return nil, k.ctx.Err()
	}
}

// TestFrozenKeepalives: the member at the other end of a keepalive stream is frozen. The
// stream is replaced, by one to another member, within the time of a call.
func TestFrozenKeepalives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		opened := 0
		r := newStreamRenewer(ctx, func(ctx context.Context) (keepAliveStream, error) {
			opened++
			return &keepAlives{ctx: ctx, frozen: opened == 1, answers: make(chan int64, 1)}, nil
		})
		defer r.close()
		defer cancel()
		call, end := context.WithTimeout(ctx, operationTimeout)
		defer end()
		if err := r.renew(call, 7, false); err != nil || opened != 2 {
			t.Errorf("renew = %v, over %d streams", err, opened)
		}
	})
}

// renewals notes which leases are renewed.
type renewals struct {
	countedLeases
	of []int64
}

func (r *renewals) renew(_ context.Context, id int64, _ bool) error {
	r.of = append(r.of, id)
	return nil
}

// TestIdleLeaseIsWhole: a lease that was idle for a while is renewed before an entry is
// written under it, unless what is left of it covers the entry's TTL.
func TestIdleLeaseIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &renewals{}
		p := newLeasePool(&Conn{leases: fake, renewer: fake, slack: time.Second})
		defer p.grants.Close()
		e := &lock.Entry{Tenant: "acme", TTL: 10 * time.Second}
		take := func(idle time.Duration) lease {
			t.Helper()
			<-time.After(idle)
			l, _, err := p.take(t.Context(), e, time.Now().Add(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := take(0)
		for _, c := range []struct {
			idle    time.Duration
			renewed int
		}{{time.Second / 2, 0}, {2 * time.Second, 1}} {
			fake.of = nil
			p.give(e.Tenant, e.TTL, l.id)
			if again := take(c.idle); again.id != l.id || len(fake.of) != c.renewed {
				t.Errorf("after %v idle the lease %x is renewed %d times, want %x and %d", c.idle, again.id, len(fake.of), l.id, c.renewed)
			}
		}
		if fake.granted != 1 {
			t.Errorf("%d leases were granted", fake.granted)
		}
	})
}
