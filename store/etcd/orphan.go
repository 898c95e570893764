package etcd

import (
	"context"
	"errors"
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// orphan is what a call of Enqueue left behind: writes that may have committed, or may
// yet, and that nobody waits for any more.
type orphan struct {
	entry  *lock.Entry // to be taken back, or nil
	leases []int64     // under which the writes are
}

// clean takes back the entry if it is there, which tells the feeds why it goes, and then
// what could still write it: a lease that is revoked takes what was written under it
// along, and refuses what comes.
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

// takeBack removes the entry, also from a store that is full. It is told by its lease from
// one that somebody else wrote.
func (s *Store) takeBack(ctx context.Context, x *orphan) error {
	found, err := s.find(ctx, x.entry)
	if err != nil || found == nil || !slices.Contains(x.leases, found.Handle) {
		return err
	}
	if err := s.Remove(ctx, found, lock.Withdrawn); !errors.Is(err, lock.Lost) {
		return err
	}
	return nil
}
