package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// writersDir has a key for each replica that writes: writers/<random>.
const writersDir = "writers/"

// writer is the key of this replica. Each transaction that puts an entry compares the revision of
// its last put. So when that put is gone, no transaction from before can happen any more, and a
// read shows what became of each.
//
// The key ends with a lease of the memory. The next transaction then fails, and is sent again
// behind a new put of the key.
type writer struct {
	*keyspace
	memory *memory
	key    []byte

	turn     chan struct{} // one changes the key at a time
	revision atomic.Int64  // of the last put; 0: the key has to be put before the next transaction
}

func newWriter(ks *keyspace, m *memory) *writer {
	return &writer{
		keyspace: ks, memory: m, turn: make(chan struct{}, 1),
		key: fmt.Appendf(nil, "%s%s%016x", ks.prefix, writersDir, rand.Uint64()),
	}
}

// current returns the revision for the next transaction, or 0.
func (w *writer) current() int64 { return w.revision.Load() }

// unchanged is the comparison of a transaction with that revision.
func (w *writer) unchanged(revision int64) *pb.Compare { return modified(w.key, revision) }

// shutOut returns when no transaction with the revision can happen any more: the put is deleted.
// That needs no space, and a request that comes late or twice changes nothing. Many calls share it.
func (w *writer) shutOut(ctx context.Context, revision int64) error {
	return w.inTurn(ctx, func(now int64) (int64, error) {
		if now != revision || revision == 0 {
			return now, nil
		}
		gone := &pb.TxnRequest{
			Compare: []*pb.Compare{w.unchanged(revision)}, Success: []*pb.RequestOp{deleteOp(w.key)},
		}
		_, err := hedged(ctx, func(ctx context.Context) (*pb.TxnResponse, error) {
			return repeated(ctx, func() (*pb.TxnResponse, error) { return w.tryTxn(ctx, "shut out", gone) })
		})
		if err != nil {
			return now, err
		}
		return 0, nil
	})
}

// ready puts the key where it is missing, unless it has changed since a transaction with the
// revision failed. An earlier put that came late is as good: nothing was sent with its revision.
func (w *writer) ready(ctx context.Context, failed int64) error {
	return w.inTurn(ctx, func(now int64) (int64, error) {
		if now != failed && now != 0 {
			return now, nil
		}
		memory, err := w.memory.lease(ctx, 1)
		if err != nil {
			return now, err
		}
		resp, err := w.tryTxn(ctx, "writer", &pb.TxnRequest{
			Compare: []*pb.Compare{w.unchanged(0)},
			Success: []*pb.RequestOp{putOp(w.key, nil, memory)}, Failure: lookOps(w.key),
		})
		switch {
		case isLeaseNotFound(err):
			w.memory.drop(memory)
			return now, err
		case err != nil:
			return now, err
		case !resp.Succeeded:
			return resp.Responses[0].GetResponseRange().Kvs[0].ModRevision, nil
		}
		return resp.Header.Revision, nil
	})
}

// inTurn changes the revision from what it is now.
func (w *writer) inTurn(ctx context.Context, change func(now int64) (int64, error)) error {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	revision, err := change(w.current())
	w.revision.Store(revision)
	return err
}
