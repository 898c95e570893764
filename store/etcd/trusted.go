package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
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
	reread(ctx context.Context) error
	refuses() bool
}

// ownRecord is the store's own record for a committer.
type ownRecord struct {
	driver *driver
	meta   *engine.Meta
}

func (o ownRecord) unchanged() (compares []*pb.Compare) {
	for _, c := range o.meta.Unchanged() {
		compares = append(compares, o.driver.unchanged(c)...)
	}
	return compares
}

func (o ownRecord) reread(ctx context.Context) error { return o.meta.Reread(ctx) }

func (o ownRecord) refuses() bool { return o.meta.Refusal() != nil }

// Refusal implements store.Store.
func (s *Store) Refusal() error {
	if refusal := s.trust.Refusal(); refusal != nil {
		return refusal
	}
	return nil
}

// Distrust implements store.Store. Other replicas learn of it from their feeds, or by their next
// write.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.meta.Distrust(ctx, number); err != nil {
		return unavailable(err, "record the distrust", true)
	}
	return nil
}
