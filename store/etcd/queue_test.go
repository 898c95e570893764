package etcd

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
)

// TestQueueOfASetIsReadAgain: a member that does not answer when the entries of sets are read
// is not the end of the call: the next attempt may reach another one.
func TestQueueOfASetIsReadAgain(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		c.Interfere(func(ctx context.Context, _ *pb.TxnRequest, do Do) (*pb.TxnResponse, error) {
			if silent.CompareAndSwap(true, false) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return do()
		})
	})
	set := &lock.Entry{
		ID: "set", Tenant: "acme", Holder: "w", TTL: time.Minute, Set: true, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}, {Name: "b", Mode: lock.Exclusive}},
	}
	if _, _, err := s.Enqueue(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	queue, _, err := s.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "b"})
	if err != nil || lock.Place(queue, set.ID) != 0 || silent.Load() {
		t.Errorf("the queue of the second lock: %v, %v", queue, err)
	}
}
