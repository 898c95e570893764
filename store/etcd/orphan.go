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

// orphan is what a call of Enqueue left behind: writes that may have committed, or still may, for
// which no caller waits.
type orphan struct {
	entry  *lock.Entry // to remove, or to keep from being written later if it is resumable; or nil
	leases []int64     // of the writes

	// the revision of the key's mark that the last write would replace; 0 if there was none
	withdrawn int64
}

// clean removes the entry if it exists, so that the feeds see the reason. Then it revokes the
// leases of late writes: a revoked lease removes what was written under it, and rejects further
// writes.
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

// shutOut keeps late writes from creating a missing entry. It puts a mark as of a withdrawn entry
// in place of the one that they would replace; a client that retries replaces that one. If the
// entry exists, its lease must not be among those to be revoked.
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
	case isNoSpace(err): // the entry has no space either; do not make others wait
		x.leases = nil
		return nil
	case err != nil:
		return err
	}
	found, err := s.find(ctx, x.entry)
	if err != nil && usedUp(err) == nil {
		return err
	}
	if found != nil { // no other caller may have learned of it
		x.leases = slices.DeleteFunc(x.leases, func(l int64) bool { return l == found.Handle })
	}
	return nil
}

// takeBack removes the entry, even from a full store. The lease distinguishes it from another
// caller's entry.
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
