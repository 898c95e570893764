package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// removing is one call that removes an entry.
type removing struct {
	store *Store
	entry *lock.Entry
	why   lock.Reason
	while []*lock.Entry

	bare bool // attempts leave no record of the reason from now on: the store has no space for it

	// of the attempts with unknown outcomes:
	any     bool     // there was one
	anyBare bool     // one of them leaves no record
	endKeys [][]byte // each exists if its attempt was applied
}

var _ engine.Removal = (*removing)(nil)

// Try implements engine.Removal.
func (r *removing) Try(ctx context.Context) error {
	s, e := r.store, r.entry
	memory, out, err := r.attempt(ctx)
	if out.again {
		r.doubt(nil, true)
	}
	switch {
	case out.applied && r.bare && r.why == lock.Withdrawn && e.Resumable():
		return nil // its mark may still exist, and ends with the lease
	case out.applied:
		s.left(e, r.why)
		return nil
	case err == nil:
		return r.refused(ctx)
	case isNoSpace(err) && !r.bare:
		r.bare = true // a record needs space; the removal itself does not
		s.ends.unrecordedReasons.Store(e.ID, r.why)
		if out.endKey == nil {
			return errors.Join(batch.ErrNotSent, err)
		}
		r.doubt(out.endKey, false)
	case isLeaseNotFound(err):
		s.ends.memory.drop(memory)
		return errors.Join(batch.ErrNotSent, err)
	case errors.Is(err, batch.ErrNotSent):
	case refused(err):
		return unavailable(err, "remove", false)
	default:
		r.doubt(out.endKey, r.bare)
	}
	return err
}

// attempt writes the removal, with a record of the reason unless it is bare.
func (r *removing) attempt(ctx context.Context) (memory int64, out outcome, err error) {
	s := r.store
	if !r.bare {
		if memory, err = s.ends.memory.lease(ctx, 2); err != nil {
			return 0, outcome{}, errors.Join(batch.ErrNotSent, err)
		}
	}
	out, err = s.commits.Do(ctx, s.deleteWrite(r.entry, r.why, memory, r.while))
	return memory, out, err
}

// doubt notes an attempt with an unknown outcome.
func (r *removing) doubt(endKey []byte, bare bool) {
	r.any, r.anyBare = true, r.anyBare || bare
	if endKey != nil {
		r.endKeys = append(r.endKeys, endKey)
	}
}

// refused returns why a comparison failed: the entry was gone or narrowed, or one of while. An
// entry that was narrowed is removed by the next attempt, unless the removal was decided by it.
func (r *removing) refused(ctx context.Context) error {
	if len(r.while) == 0 && !r.entry.Choosing() {
		return engine.ErrGone
	}
	now, err := r.store.asItIs(ctx, r.entry)
	switch {
	case err != nil:
		return err
	case r.entry.Choosing() && !now.Choosing() && lock.Place(r.while, r.entry.ID) < 0:
		r.entry = now
		return errors.Join(batch.ErrNotSent, engine.ErrNarrowed)
	}
	r.store.ends.unrecordedReasons.Delete(r.entry.ID)
	return lock.Errorf(lock.Changed, "what the removal was decided by is gone")
}

// Did implements engine.Removal. An attempt that leaves no record is credited with it.
func (r *removing) Did(ctx context.Context) (bool, error) {
	if !r.anyBare { // then no attempt without a record removed it
		defer r.store.ends.unrecordedReasons.Delete(r.entry.ID)
	}
	for _, key := range r.endKeys {
		resp, err := r.store.read(ctx, "confirm removal", &pb.RangeRequest{Key: key, CountOnly: true})
		if err != nil {
			return false, err
		}
		if resp.Count > 0 {
			return true, nil
		}
	}
	return r.anyBare || r.any && len(r.endKeys) == 0, nil
}
