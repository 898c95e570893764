package etcd

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/lock"
)

// TestDoubtedEntryIsTakenBack: the answer to a write shows another cluster for a moment, and etcd
// does not answer the removal of what was written. It is removed when etcd answers again.
func TestDoubtedEntryIsTakenBack(t *testing.T) {
	t.Parallel()
	s, late := startLate(t, 0)
	silent := &silentRemovals{kvClient: s.conn.kv}
	conn := *s.conn
	conn.kv = silent
	doubter, err := Open(t.Context(), &conn, Config{Timeout: givenUp})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := doubter.Close(); err != nil {
			t.Error(err)
		}
	}()
	silent.put.Store(ptr(func() { doubter.trust.Received(doubter.trust.Sent(), math.MaxInt32, 1) }))
	_, _, err = doubter.Enqueue(t.Context(), lateEntry())
	var doubted *lock.Error
	if !errors.As(err, &doubted) || doubted.Code != lock.StoreUnavailable || !doubted.OutcomeUnknown {
		t.Fatalf("Enqueue = %v, want that nothing is granted, and that it may have taken effect", err)
	}
	other := late.beside(t, s)
	if other.mustFind(t, lateEntry()) == nil {
		t.Fatal("the entry was removed in time, which shows nothing")
	}
	silent.put.Store(nil)
	soon(t, "the entry is taken back", func() bool { return other.mustFind(t, lateEntry()) == nil })
}

func ptr[T any](v T) *T { return &v }

// silentRemovals calls put when an entry was written, and answers neither removals nor reads
// until it is nil.
type silentRemovals struct {
	kvClient
	put atomic.Pointer[func()]
}

func (x *silentRemovals) Range(
	ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	if x.put.Load() != nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return x.kvClient.Range(ctx, r)
}

func (x *silentRemovals) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	put := x.put.Load()
	if put != nil && (removes(r) || len(PutsIn(r)) == 0) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	resp, err := x.kvClient.Txn(ctx, r)
	if put != nil && len(PutsIn(r)) > 0 {
		(*put)()
	}
	return resp, err
}

func removes(r *pb.TxnRequest) bool {
	return slices.ContainsFunc(r.Success, func(op *pb.RequestOp) bool {
		return op.GetRequestDeleteRange() != nil ||
			op.GetRequestTxn() != nil && removes(op.GetRequestTxn())
	})
}
