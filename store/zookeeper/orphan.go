package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
)

// orphan is what a call of Enqueue left behind: writes that may have happened after it ended.
type orphan struct {
	entry  *lock.Entry
	writes []*write
}

// giveUp ends a call with an unknown result. It removes an entry that is not resumable, because
// no retry can join it. A resumable one waits for a retry, or expires.
func (j *join) giveUp() {
	if len(j.open) > 0 && !j.entry.Resumable() {
		j.orphans.Add(&orphan{j.entry, j.open}, j.entry.TTL)
	}
}

// refuse ends a call with an error, which states whether an earlier attempt may stand.
func (j *join) refuse(why *lock.Error) *lock.Error {
	j.giveUp()
	why.OutcomeUnknown = why.OutcomeUnknown || j.unknown
	return why
}

// clean learns what became of the writes, and removes the entry if it exists. When each has an
// outcome, none is in flight: the server runs no write of a broken connection once the next one
// is in use.
func (s *Store) clean(ctx context.Context, x *orphan) error {
	for len(x.writes) > 0 {
		if _, err := x.writes[0].Late(ctx); errors.Is(err, batch.ErrUnknown) {
			return err
		}
		x.writes = x.writes[1:]
	}
	l, err := s.calls.get(ctx)
	if err != nil {
		return err
	}
	if _, err := s.barrierOn(ctx, l); err != nil {
		return err
	}
	found, err := s.readEntry(ctx, l, keyOf(x.entry))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	}
	if err := s.Remove(ctx, found, lock.Withdrawn); err != nil && !errors.Is(err, lock.Lost) {
		return err
	}
	return nil
}
