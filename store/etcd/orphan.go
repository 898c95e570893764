package etcd

import (
	"context"
	"errors"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// orphan is what a call of Enqueue left behind: a write that may have happened, or still may, for
// which no caller waits, and leases.
type orphan struct {
	entry  *lock.Entry // of the write; or nil
	writer int64       // the revision of the writer's key with which it was sent, or 0
	leases []int64     // of the call's writes
}

// clean shuts the write out. Then it removes the entry if it exists and no client can come back for
// it, so that the feeds see the reason, and revokes the other leases.
func (s *Store) clean(ctx context.Context, x *orphan) error {
	if x.entry != nil {
		if err := s.takeBack(ctx, x); err != nil {
			return err
		}
	}
	for len(x.leases) > 0 {
		if err := s.leases.revoke(ctx, x.leases[0]); err != nil {
			return err
		}
		x.leases = x.leases[1:]
	}
	return nil
}

// takeBack removes the entry, even from a full store. The lease distinguishes it from another
// caller's entry.
func (s *Store) takeBack(ctx context.Context, x *orphan) error {
	if err := s.writer.shutOut(ctx, x.writer); err != nil {
		return err
	}
	found, err := s.find(ctx, x.entry)
	if usedUp(err) != nil {
		return nil //nolint:nilerr // it is not there
	}
	if err != nil || found == nil || !slices.Contains(x.leases, found.Handle) {
		return err
	}
	if x.entry.Resumable() {
		x.leases = slices.DeleteFunc(x.leases, func(l int64) bool { return l == found.Handle })
		return nil
	}
	if err := s.Remove(ctx, found, lock.Withdrawn); !errors.Is(err, lock.Lost) {
		return err
	}
	return nil
}
