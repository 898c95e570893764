package etcd

import (
	"context"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
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
	bubble.Test(t, func(t *testing.T) {
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
		if err := r.renew(call, 7); err != nil || opened != 2 {
			t.Errorf("renew = %v, over %d streams", err, opened)
		}
	})
}

// oneByOne is a keepalive stream that takes its time for each renewal.
type oneByOne struct {
	ctx    context.Context
	each   time.Duration
	sent   chan int64 // and not answered
	served []int64
}

func (o *oneByOne) Send(r *pb.LeaseKeepAliveRequest) error {
	o.sent <- r.ID
	return nil
}

func (o *oneByOne) Recv() (*pb.LeaseKeepAliveResponse, error) {
	select {
	case id := <-o.sent:
		<-time.After(o.each)
		o.served = append(o.served, id)
		return &pb.LeaseKeepAliveResponse{ID: id, TTL: 10}, nil
	case <-o.ctx.Done():
		return nil, o.ctx.Err()
	}
}

// opened returns the streams that a renewer has opened.
type opened = func() []*oneByOne

// renewsOneByOne runs use with a renewer over streams that take so long for each renewal.
func renewsOneByOne(
	t *testing.T, each time.Duration,
	use func(ctx context.Context, r *streamRenewer, streams opened),
) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var streams []*oneByOne
		r := newStreamRenewer(ctx, func(ctx context.Context) (keepAliveStream, error) {
			streams = append(streams, &oneByOne{ctx: ctx, each: each, sent: make(chan int64, 10_000)})
			return streams[len(streams)-1], nil
		})
		defer r.close()
		defer cancel()
		use(ctx, r, func() []*oneByOne { return streams })
	})
}

// TestSlowKeepalives: a member that is slow and answers is not left for another, where the renewals
// would have to wait again.
func TestSlowKeepalives(t *testing.T) {
	slow := 300 * time.Millisecond
	renewsOneByOne(t, slow, func(ctx context.Context, r *streamRenewer, streams opened) {
		var calls sync.WaitGroup
		for i := range int64(10) {
			calls.Go(func() {
				call, end := context.WithTimeout(ctx, operationTimeout)
				defer end()
				if err := r.renew(call, i*renewStreams); err != nil {
					t.Errorf("renew = %v", err)
				}
			})
		}
		calls.Wait()
		if n := len(streams()); n != 1 {
			t.Errorf("over %d streams", n)
		}
	})
}

// TestAbandonedKeepalives: of the renewals without a waiting caller only those that were sent are
// done. A renewal that is requested again keeps its position.
func TestAbandonedKeepalives(t *testing.T) {
	slow := 10 * time.Millisecond
	renewsOneByOne(t, slow, func(ctx context.Context, r *streamRenewer, streams opened) {
		const many = 1000
		var calls sync.WaitGroup
		for i := range int64(many) {
			calls.Go(func() {
				call, end := context.WithTimeout(ctx, 100*time.Millisecond)
				defer end()
				_ = r.renew(call, i*renewStreams)
			})
		}
		calls.Wait()
		if err := r.renew(ctx, (many-1)*renewStreams); err != nil {
			t.Errorf("renew = %v", err)
		}
		if n := len(streams()[0].served); n > many/10 {
			t.Errorf("%d of %d were done", n, many)
		}
	})
}

// renewals notes which leases are renewed.
type renewals struct {
	countedLeases
	of []int64
}

func (r *renewals) renew(_ context.Context, id int64) error {
	r.of = append(r.of, id)
	return nil
}

// TestIdleLeaseIsWhole: a lease that was idle for a while is renewed before an entry is
// written under it, unless what is left of it covers the entry's TTL.
func TestIdleLeaseIsWhole(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
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
				t.Errorf(
					"after %v idle the lease %x is renewed %d times, want %x and %d", c.idle, again.id,
					len(fake.of), l.id, c.renewed,
				)
			}
		}
		if fake.granted != 1 {
			t.Errorf("%d leases were granted", fake.granted)
		}
	})
}
