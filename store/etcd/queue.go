package etcd

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// primariesAtOnce bounds the entries of sets that one read requests.
const primariesAtOnce = 100

// Queue implements store.Store.
func (ks *keyspace) Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, ks.timeout)
	defer cancel()
	read, at, err := ks.readQueue(ctx, r)
	for isCompacted(err) && store.Pause(ctx, 20*time.Millisecond) == nil {
		read, at, err = ks.readQueue(ctx, r)
	}
	if err != nil {
		return nil, 0, unavailable(err, "read the queue", false)
	}
	entries, number := read.at(at, ks.trust.Floor())
	return entries, number, nil
}

// readQueue reads a lock's keys, and then at the same revision the entries that those of sets
// point to.
func (ks *keyspace) readQueue(ctx context.Context, r lock.Ref) (read picture, at int64, err error) {
	prefix := ks.prefix + entriesDir + r.Tenant + "/" + r.Name + "/"
	resp, err := ks.read(
		ctx, "queue", &pb.RangeRequest{Key: []byte(prefix), RangeEnd: prefixEnd(prefix)},
	)
	if err != nil {
		return read, 0, err
	}
	found, at := make([]*mvccpb.KeyValue, 0, len(resp.Kvs)), resp.Header.Revision
	var elsewhere []*pb.RequestOp
	for _, kv := range resp.Kvs {
		if primary, ok := ks.pointsTo(kv); ok {
			elsewhere = append(elsewhere, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
				RequestRange: &pb.RangeRequest{Key: primary, Revision: at},
			}})
			continue
		}
		found = append(found, kv)
	}
	for some := range slices.Chunk(elsewhere, primariesAtOnce) {
		kvs, err := ks.readPrimaries(ctx, some)
		if err != nil {
			return read, 0, err
		}
		found = append(found, kvs...)
	}
	for _, kv := range found {
		e := ks.entryOf(kv)
		if e != nil && e.Opaque && e.Name() != r.Name {
			continue // it has its position at its home alone, as in a list
		}
		read.add(kv, e)
	}
	return read, at, nil
}

// readPrimaries reads some of the entries, as read does.
func (ks *keyspace) readPrimaries(
	ctx context.Context, ranges []*pb.RequestOp,
) ([]*mvccpb.KeyValue, error) {
	resp, err := repeated(ctx, func() (*pb.TxnResponse, error) {
		return ks.tryTxn(ctx, "queue", &pb.TxnRequest{Success: ranges})
	})
	if err != nil {
		return nil, err
	}
	var kvs []*mvccpb.KeyValue
	for _, r := range resp.Responses {
		kvs = append(kvs, r.GetResponseRange().Kvs...)
	}
	return kvs, nil
}
