package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// RemoveAndPut implements store.Store. It is a separate transaction, because operators' actions
// are few. A full store has space for it, as for any removal.
func (s *Store) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	if err := store.CheckRemovalPut(p); err != nil {
		return err
	}
	_, err := store.PutRecord(ctx, &removing{s.records, e, why, note}, p)
	if err == nil {
		s.left(e, why)
	}
	return err
}

// removing is a table of records whose writes also remove an entry.
type removing struct {
	*RecordStore
	entry *lock.Entry
	why   lock.Reason
	note  *lock.Note
}

// Swap implements store.RecordTable.
func (r *removing) Swap(
	ctx context.Context, s store.RecordState, w *store.RecordWrite,
) (uint64, error) {
	if refusal := r.store.trust.Refusal(); refusal != nil {
		return 0, refusal
	}
	memory, err := r.store.memory.lease(ctx, 2)
	if err != nil {
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	resp, err := r.store.tryTxn(ctx, "remove and put", r.removalTxn(s, w, memory))
	switch {
	case isLeaseNotFound(err):
		r.store.memory.drop(memory)
		return 0, errors.Join(batch.ErrNotSent, err)
	case err == nil && !resp.Succeeded && !r.there(resp):
		return 0, store.Lost("the entry is not in the queue")
	}
	return r.swapped(ctx, s, w, resp, err)
}

// removalTxn adds the removal, with the reason, to the put.
func (r *removing) removalTxn(
	s store.RecordState, w *store.RecordWrite, memory int64,
) *pb.TxnRequest {
	txn, removal := r.swapTxn(s, w, 0), r.store.deleteWrite(r.entry, r.why, memory, nil).Payload
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
func (r *removing) there(resp *pb.TxnResponse) bool {
	kvs := resp.Responses[2].GetResponseRange().GetKvs()
	return len(kvs) > 0 && kvs[0].CreateRevision == r.store.revision(r.entry.Number)
}
