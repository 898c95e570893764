package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// epochJump is how far an election, and so a start of the servers, raises zxids.
const epochJump = 1 << 32

// ownRecord is the store's own record.
type ownRecord struct {
	*engine.Meta
	*journal
}

// reread reads the record until that succeeds. handedOut is an issued number, or 0.
func (s *Store) reread(ctx context.Context, handedOut uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.reader.timeout)
	defer cancel()
	for {
		err := s.meta.Distrust(ctx, handedOut)
		if err == nil || store.Pause(ctx, firstPause) != nil {
			return err
		}
	}
}

// refresh reads what another replica may have changed. After a failed read everything stays as it
// was.
func (o *ownRecord) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	err := o.Reread(ctx)
	if errors.Is(err, store.ErrRecords) || answered(err) && !errors.Is(err, zk.ErrBadVersion) {
		o.log.Error("the store's own record cannot be read", "error", err)
		return nil
	}
	return err
}

// check is the operation that fails unless the record is as this replica knows it.
func (o *ownRecord) check() any {
	return &zk.CheckVersionRequest{Path: o.root.meta(), Version: int32(o.Known().Stamp)}
}

// barrierAsKnown is a barrier that fails unless the record is as this replica knows it, or is
// unreadable.
func (o *ownRecord) barrierAsKnown(ctx context.Context, l *link) (*zk.Stat, error) {
	mark := o.trust.Sent()
	stat, err := o.setLog(ctx, l, o.check())
	switch {
	case err == nil:
		o.trust.Received(mark, stat.Mzxid, 0)
	case errors.Is(err, zk.ErrNoAuth):
		return o.barrierOn(ctx, l)
	}
	return stat, err
}

// Refusal implements store.Store.
func (s *Store) Refusal() error {
	if refusal := s.reader.trust.Refusal(); refusal != nil {
		return refusal
	}
	return nil
}

// Distrust implements store.Store. Other replicas learn of it from the log, or by their next
// write.
func (s *Store) Distrust(ctx context.Context, number uint64) error {
	if err := s.reread(ctx, number); err != nil {
		return unavailable(err, "record the distrust", true)
	}
	return nil
}
