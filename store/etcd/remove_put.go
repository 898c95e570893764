package etcd

import (
	"context"
	"errors"
	"time"

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
	err := s.records.PutWith(ctx, p, func(ctx context.Context, t engine.Txn) (int64, error) {
		return s.removeAnd(ctx, t, e, why, note)
	})
	if err == nil {
		s.left(e, why)
	}
	return err
}

// removeAnd removes the entry in the transaction t.
func (s *Store) removeAnd(
	ctx context.Context, t engine.Txn, e *lock.Entry, why lock.Reason, note *lock.Note,
) (int64, error) {
	memory, err := s.ends.memory.lease(ctx, 2)
	if err != nil {
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	txn, removal := s.driver.txnOf(t), s.deleteWrite(e, why, memory, nil).Payload
	removal.end.Note = s.ends.pasts.Note(e.Tenant, note)
	end := store.Encode([]store.End{*removal.end})
	txn.Compare = append(txn.Compare, removal.compares...)
	txn.Success = append(txn.Success, removal.ops...)
	txn.Success = append(txn.Success, putOp(endedKey(s.prefix, time.Now()), end, memory))
	txn.Failure = append(txn.Failure, lookOps(s.primaryKey(e))...)
	resp, err := s.tryTxn(ctx, "remove and put", txn)
	switch {
	case isLeaseNotFound(err):
		s.ends.memory.drop(memory)
		return 0, errors.Join(batch.ErrNotSent, err)
	case err == nil && !resp.Succeeded:
		kvs := resp.Responses[len(resp.Responses)-1].GetResponseRange().GetKvs()
		if !s.isAt(e, kvs) {
			return 0, store.Lost(engine.ErrGone.Error())
		}
		if now := s.entryOf(kvs[0]); e.Choosing() && now != nil && !now.Choosing() {
			return s.removeAnd(ctx, t, now, why, note)
		}
	}
	return s.driver.committed(t, resp, err)
}
