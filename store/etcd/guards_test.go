package etcd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/test/bubble"
)

// lostPast is a store that refuses grants after its records were read again.
type lostPast struct{ read bool }

func (l *lostPast) refuses() bool { return l.read }

func (l *lostPast) reread(context.Context) error {
	l.read = true
	return nil
}

func (l *lostPast) unchanged() []*pb.Compare {
	if l.read {
		return nil
	}
	return []*pb.Compare{created([]byte("meta"), 1)}
}

// TestStaleBatchIsNotPutWhereTheStoreRefuses: of a batch that was compared with old records of
// the store nothing is put once these say that it lost its past. A removal is done.
func TestStaleBatchIsNotPutWhereTheStoreRefuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		commits := &committer{
			own: &ownWrites{}, writer: knownWriter(),
			ctx: t.Context(), observe: func(int, time.Duration, error) {}, trusted: &lostPast{},
		}
		commits.over(&present{missing: "meta"}, false)
		defer commits.Close()
		put, removed := removal("put", true), removal("removed", true)
		put.Payload.puts = true
		var done sync.WaitGroup
		done.Go(func() {
			if out, err := commits.Do(t.Context(), put); !errors.Is(err, batch.ErrNotSent) {
				t.Errorf("an entry is put: %+v, %v", out, err)
			}
		})
		done.Go(func() {
			if out, err := commits.Do(t.Context(), removed); err != nil || !out.applied {
				t.Errorf("a removal: %+v, %v", out, err)
			}
		})
		done.Wait()
	})
}

// TestRenewalUnderAnotherLeaseIsLost: an entry is renewed by its own lease. One that is there
// under another lease is not taken for renewed, or for renewable.
func TestRenewalUnderAnotherLeaseIsLost(t *testing.T) {
	s, _ := startLate(t, 0)
	placed, _, err := s.Enqueue(t.Context(), lateEntry())
	if err != nil {
		t.Fatal(err)
	}
	other := *placed
	other.Handle++
	if err := s.Renew(t.Context(), &other); !errors.Is(err, lock.Lost) {
		t.Errorf("Renew = %v, want lock_lost", err)
	}
	if err := s.Renew(t.Context(), placed); err != nil {
		t.Errorf("Renew under its own lease = %v", err)
	}
}

// fullOnce is a KV service that is full at the first removal, and loses the answer of the next.
type fullOnce struct {
	kvClient
	mu       sync.Mutex
	removals int
}

func (f *fullOnce) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	if !slices.ContainsFunc(
		r.Success, func(op *pb.RequestOp) bool { return op.GetRequestDeleteRange() != nil },
	) {
		return f.kvClient.Txn(ctx, r)
	}
	f.mu.Lock()
	f.removals++
	n := f.removals
	f.mu.Unlock()
	switch n {
	case 1:
		return nil, rpctypes.ErrGRPCNoSpace
	case 2:
		if _, err := f.kvClient.Txn(ctx, r); err != nil {
			return nil, err
		}
		return nil, context.DeadlineExceeded
	}
	return f.kvClient.Txn(ctx, r)
}

// TestRemovalWithoutARecordIsItsOwn: a removal from a full store leaves no record, and its answer
// is lost. That the entry is gone then is its doing, and the release succeeds.
func TestRemovalWithoutARecordIsItsOwn(t *testing.T) {
	s, late := startLate(t, 0)
	placed, _, err := s.Enqueue(t.Context(), lateEntry())
	if err != nil {
		t.Fatal(err)
	}
	full := &fullOnce{kvClient: late}
	s.commits.kv = full
	if err := s.Remove(t.Context(), placed, lock.Released); err != nil || full.removals < 3 {
		t.Errorf("Remove = %v after %d attempts", err, full.removals)
	}
}
