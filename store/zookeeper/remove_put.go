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

// RemoveAndPut implements store.Store. The write goes through the committer like other removals, so
// that it is in the log.
func (s *Store) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	ctx, cancel := context.WithTimeout(ctx, s.reader.timeout)
	defer cancel()
	if err := s.remover.checkNumber(ctx, e); err != nil {
		return err
	}
	r := s.remover.newRemoval(e, s.remover.hasLease(e), anyVersion, why)
	r.note, r.held = note, s.reader.root.shardOfKey(engine.KeyOf(p.RecordKey))
	return s.small.PutWith(ctx, p, func(ctx context.Context, t engine.Txn) (int64, error) {
		steps := s.driver.steps(t)
		r.besides = make([]any, len(steps))
		for i, step := range steps {
			r.besides[i] = step.op
		}
		out := s.remover.attempt(ctx, r)
		return out.zxid, s.refusedPut(ctx, r, out, steps)
	})
}

// refusedPut returns why an attempt with these steps besides failed, as [engine.Driver] does.
func (s *Store) refusedPut(ctx context.Context, r *removal, out outcome, steps []step) error {
	first := r.own() // of the operations besides
	switch {
	case out.err == nil || out.unknown:
		return out.err
	case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
		return store.Lost(engine.ErrGone.Error())
	case answered(out.err) && out.op >= first && !errors.Is(out.err, zk.ErrNoAuth):
		return s.driver.explain(ctx, steps[out.op-first].failed)
	case answered(out.err) && !errors.Is(out.err, zk.ErrNotEmpty):
		return unavailable(out.err, "remove and put", false)
	}
	return errors.Join(batch.ErrNotSent, out.err)
}
