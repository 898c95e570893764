package etcd

import (
	"bytes"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/store"
)

// trustedKV holds every linearizable answer against what was received before the
// call was sent.
type trustedKV struct {
	kv    kvClient
	trust *store.Trust
}

func (t trustedKV) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	mark := t.trust.Sent()
	resp, err := t.kv.Range(ctx, r)
	if err == nil && !r.Serializable {
		t.received(mark, resp.Header)
	}
	return resp, err
}

func (t trustedKV) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	mark := t.trust.Sent()
	resp, err := t.kv.Txn(ctx, r)
	if err == nil {
		t.received(mark, resp.Header)
	}
	return resp, err
}

func (t trustedKV) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	mark := t.trust.Sent()
	resp, err := t.kv.DeleteRange(ctx, r)
	if err == nil {
		t.received(mark, resp.Header)
	}
	return resp, err
}

func (t trustedKV) received(mark uint64, h *pb.ResponseHeader) {
	t.trust.Received(mark, h.Revision, h.ClusterId)
}

// trusted is what a committer needs of the store's trust.
type trusted interface {
	unchanged() []*pb.Compare
	readAnew(ctx context.Context, told uint64) error
	refuses() bool
}

func (s *Store) refuses() bool { return s.trust.Refusal() != nil }

// bind adds comparisons to a transaction that puts an entry, and has it answer with
// what stands there if one of all its comparisons fails.
func bind(txn *pb.TxnRequest, unchanged []*pb.Compare) {
	txn.Compare = append(txn.Compare, unchanged...)
	for _, c := range unchanged {
		txn.Failure = append(txn.Failure, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: c.Key},
		}})
	}
}

// outdated reports whether a transaction was not executed because the floor or the
// distrust is not what this replica knows.
func outdated(txn *pb.TxnRequest, resp *pb.TxnResponse) bool {
	if resp.Succeeded {
		return false
	}
	bound := txn.Compare[len(txn.Compare)-len(txn.Failure):]
	for i, r := range resp.Responses {
		kvs := r.GetResponseRange().Kvs
		if len(kvs) != 1 || !bytes.Equal(kvs[0].Value, bound[i].GetValue()) {
			return true
		}
	}
	return false
}

// bringUpToDate reads the store's records anew and sends the batch again. An entry is
// not put into a store that is found to have lost its past: its caller sees that.
func (c *committer) bringUpToDate(ctx context.Context, batch []*write) {
	err := c.trusted.readAnew(ctx, 0)
	var again []*write
	for _, w := range batch {
		if err != nil || w.joins && c.trusted.refuses() {
			w.done <- outcome{err: errWithdrawn}
		} else {
			again = append(again, w)
		}
	}
	c.commitAgain(again)
}
