package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// RemoveAndPut implements store.Store. It is a separate transaction, because operators' actions
// are few. A full store has space for it, as for any removal.
func (s *Store) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	if err := engine.CheckRemovalPut(p); err != nil {
		return err
	}
	_, err := engine.PutRecord(ctx, &removing{s.records, s, e, why, note}, p)
	if err == nil {
		s.left(e, why)
	}
	return err
}

// removing is a table of records whose writes also remove an entry.
type removing struct {
	*engine.Records
	store *Store
	entry *lock.Entry
	why   lock.Reason
	note  *lock.Note
}

// Swap implements engine.Table.
func (r *removing) Swap(
	ctx context.Context, s engine.RecordState, w *engine.RecordWrite,
) (uint64, error) {
	t, err := r.Txn(ctx, s, w)
	if err != nil {
		return 0, err
	}
	memory, err := r.store.memory.lease(ctx, 2)
	if err != nil {
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	resp, err := r.store.tryTxn(ctx, "remove and put", r.removalTxn(t, memory))
	switch {
	case isLeaseNotFound(err):
		r.store.memory.drop(memory)
		return 0, errors.Join(batch.ErrNotSent, err)
	case err == nil && !resp.Succeeded && !r.there(t, resp):
		return 0, store.Lost("the entry is not in the queue")
	}
	position, err := r.store.driver.committed(t, resp, err)
	return r.Swapped(ctx, t, w, position, err)
}

// removalTxn adds the removal, with the reason, to the put.
func (r *removing) removalTxn(t engine.Txn, memory int64) *pb.TxnRequest {
	txn, removal := r.store.driver.txnOf(t), r.store.deleteWrite(r.entry, r.why, memory, nil).Payload
	removal.end.Note = r.store.pasts.Note(r.entry.Tenant, r.note)
	txn.Compare = append(txn.Compare, removal.compares...)
	txn.Success = append(txn.Success, removal.ops...)
	txn.Success = append(
		txn.Success,
		putOp(endedKey(r.store.prefix, time.Now()), store.Encode([]store.End{*removal.end}), memory),
	)
	txn.Failure = append(txn.Failure, lookOps(r.store.primaryKey(r.entry))...)
	return txn
}

// there reports whether the entry existed when its removal was rejected.
func (r *removing) there(t engine.Txn, resp *pb.TxnResponse) bool {
	kvs := resp.Responses[2*len(t.If)].GetResponseRange().GetKvs()
	return len(kvs) > 0 && kvs[0].CreateRevision == r.store.revision(r.entry.Number)
}
