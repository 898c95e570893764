package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// RemoveAndPut implements store.Store.
func (s *Store) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	if err := store.CheckRemovalPut(p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.remover.checkNumber(ctx, e); err != nil {
		return err
	}
	r := s.remover.newRemoval(e, s.remover.hasLease(e), anyVersion, why)
	r.note = note
	_, err := store.PutRecord(ctx, &removing{s.small, r}, p)
	return err
}

// removing is a table of records whose writes also remove an entry.
type removing struct {
	*RecordStore
	removal *removal
}

// Swap implements store.RecordTable. The write goes through the committer like other removals, so
// that it is in the log.
func (t *removing) Swap(
	ctx context.Context, s store.RecordState, w *store.RecordWrite,
) (uint64, error) {
	if refusal := t.store.trust.Refusal(); refusal != nil {
		return 0, refusal
	}
	ops, r := t.writeOps(s, w, w.RecordForm), t.removal
	r.besides, r.held = make([]any, len(ops)), t.store.root.shardOfRecord(w.RecordKey)
	for i, o := range ops {
		r.besides[i] = o.op
	}
	out := t.store.remover.attempt(ctx, r)
	if out.err == nil {
		return t.store.number(out.zxid), nil
	}
	return 0, t.refused(ctx, out, ops, w.Kind)
}

// refused returns why an attempt failed, in the terms of [store.RecordTable].
func (t *removing) refused(ctx context.Context, out outcome, ops []recordOp, kind string) error {
	first := t.removal.own() // of the operations besides
	switch {
	case out.unknown:
		return out.err
	case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
		return store.Lost("the entry is not in the queue")
	case answered(out.err) && out.op >= first && !errors.Is(out.err, zk.ErrNoAuth):
		return ops[out.op-first].failed(ctx, t.RecordStore, "", kind)
	case answered(out.err) && !errors.Is(out.err, zk.ErrNotEmpty):
		return unavailable(out.err, "remove and put", false)
	}
	return errors.Join(batch.ErrNotSent, out.err)
}
