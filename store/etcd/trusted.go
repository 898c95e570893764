package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/store"
)

// trustedKV compares every linearizable answer with what was received before the call was sent.
type trustedKV struct {
	kv    kvClient
	trust *store.Trust
}

func (t trustedKV) Range(
	ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption,
) (*pb.RangeResponse, error) {
	mark := t.trust.Sent()
	resp, err := t.kv.Range(ctx, r)
	if err == nil && !r.Serializable {
		t.received(mark, resp.Header)
	}
	return resp, err
}

func (t trustedKV) Txn(
	ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	mark := t.trust.Sent()
	resp, err := t.kv.Txn(ctx, r)
	if err == nil {
		t.received(mark, resp.Header)
	}
	return resp, err
}

func (t trustedKV) received(mark uint64, h *pb.ResponseHeader) {
	t.trust.Received(mark, h.Revision, h.ClusterId)
}

// trusted is the part of the store's trust that a committer needs.
type trusted interface {
	unchanged() []*pb.Compare
	rereadRecords(ctx context.Context, told uint64) error
	refuses() bool
}

func (mk *metaKeeper) refuses() bool { return mk.trust.Refusal() != nil }
