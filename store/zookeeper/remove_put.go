package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// RemoveAndPut implements store.Store.
func (s *Store) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	if err := engine.CheckRemovalPut(p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.remover.checkNumber(ctx, e); err != nil {
		return err
	}
	r := s.remover.newRemoval(e, s.remover.hasLease(e), anyVersion, why)
	r.note = note
	_, err := engine.PutRecord(ctx, &removing{s.small, s, r}, p)
	return err
}

// removing is a table of records whose writes also remove an entry.
type removing struct {
	*engine.Records
	store   *Store
	removal *removal
}

// Swap implements engine.Table. The write goes through the committer like other removals, so
// that it is in the log.
func (t *removing) Swap(
	ctx context.Context, s engine.RecordState, w *engine.RecordWrite,
) (uint64, error) {
	txn, err := t.Txn(ctx, s, w)
	if err != nil {
		return 0, err
	}
	steps, r := t.store.driver.steps(txn), t.removal
	r.besides, r.held = make([]any, len(steps)), t.store.root.shardOfKey(engine.KeyOf(w.RecordKey))
	for i, s := range steps {
		r.besides[i] = s.op
	}
	out := t.store.remover.attempt(ctx, r)
	return t.Swapped(ctx, txn, w, out.zxid, t.refused(ctx, out, steps))
}

// refused returns why an attempt failed, in the terms of [engine.Driver].
func (t *removing) refused(ctx context.Context, out outcome, steps []step) error {
	first := t.removal.own() // of the operations besides
	switch {
	case out.err == nil || out.unknown:
		return out.err
	case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
		return store.Lost("the entry is not in the queue")
	case answered(out.err) && out.op >= first && !errors.Is(out.err, zk.ErrNoAuth):
		return t.store.driver.explain(ctx, steps[out.op-first].failed)
	case answered(out.err) && !errors.Is(out.err, zk.ErrNotEmpty):
		return unavailable(out.err, "remove and put", false)
	}
	return errors.Join(batch.ErrNotSent, out.err)
}
