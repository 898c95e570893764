package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// orphan is what a call of Enqueue left behind: writes that may have committed, or may
// yet, and that nobody waits for any more.
type orphan struct {
	entry  *lock.Entry // to be taken back, or kept from being written later if it is resumable; or nil
	leases []int64     // under which the writes are

	// the revision of the key's mark that the last of them would replace; 0 if there was none
	withdrawn int64
}

// clean takes back the entry if it is there, which tells the feeds why it goes, and then
// what could still write it: a lease that is revoked takes what was written under it
// along, and refuses what comes.
func (s *Store) clean(ctx context.Context, x *orphan) error {
	switch {
	case x.entry == nil:
	case x.entry.Resumable():
		if err := s.shutOut(ctx, x); err != nil {
			return err
		}
	default:
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

// shutOut keeps the writes of an entry that is not there from writing it, by a mark as of a
// withdrawn one, in place of the one that they would replace: whoever comes back for the entry
// replaces that. The lease of an entry that is there is not among those to be revoked then.
func (s *Store) shutOut(ctx context.Context, x *orphan) error {
	memory, err := s.memory.lease(ctx, 1)
	if err != nil {
		return err
	}
	key := []byte(s.markKey(x.entry.Tenant, x.entry.ID))
	put := []*pb.RequestOp{
		putOp(key, store.Encode(mark{Reason: lock.Withdrawn, At: time.Now().UnixMilli()}), memory),
	}
	_, err = s.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{modified(key, x.withdrawn)}, Success: put,
		Failure: []*pb.RequestOp{
			txnOp(&pb.TxnRequest{Compare: []*pb.Compare{created(key, 0)}, Success: put}),
		},
	})
	switch {
	case isLeaseNotFound(err):
		s.memory.drop(memory)
		return err
	case isNoSpace(err): // nor has the entry room; others are not to wait for that to change
		x.leases = nil
		return nil
	case err != nil:
		return err
	}
	found, err := s.find(ctx, x.entry)
	if err != nil && usedUp(err) == nil {
		return err
	}
	if found != nil { // nobody else may have learned of it
		x.leases = slices.DeleteFunc(x.leases, func(l int64) bool { return l == found.Handle })
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
