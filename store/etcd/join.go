package etcd

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// joining is one call of Enqueue: attempts to write an entry until one stands. Each has
// a lease of its own. One whose outcome is not known may still commit, long after the
// call; it cannot once its lease is revoked.
type joining struct {
	store  *Store
	entry  *lock.Entry
	value  []byte
	leases []int64 // of all attempts
	open   []int64 // of the attempts whose outcomes are not known
}

func (j *joining) run(ctx context.Context) (*lock.Entry, error) {
	for {
		if err := j.store.trust.Refusal(); err != nil {
			err.Ambiguous = j.giveUp()
			return nil, err
		}
		placed, err := j.try(ctx)
		if err == nil {
			j.stands(placed)
			return placed, nil
		}
		if used := usedUp(err); used != nil {
			j.stands(nil)
			return nil, used
		}
		if full := (*lock.Error)(nil); errors.As(err, &full) && full.Code == lock.Overloaded {
			return nil, full
		}
		if refused(err) && !isLeaseNotFound(err) || j.store.closing.Err() != nil || store.Pause(ctx, 20*time.Millisecond) != nil {
			return nil, unavailable(err, "enqueue", j.giveUp())
		}
		// The outcome may be unknown, but the id is ours: an entry with it is the
		// one we wrote, and the comparison keeps us from writing a second.
		found, err := j.store.find(ctx, j.entry)
		if used := usedUp(err); used != nil {
			j.stands(nil)
			return nil, used
		}
		if err == nil && found != nil {
			j.stands(found)
			return found, nil
		}
	}
}

// errNotTried marks an attempt that ended before anything was written.
var errNotTried = errors.New("nothing was written")

// try makes one attempt. The lease of one that certainly wrote nothing is used again.
func (j *joining) try(ctx context.Context) (*lock.Entry, error) {
	s, e := j.store, j.entry
	// What may have happened is not refused any more.
	l, err := s.leases.take(ctx, e, len(j.open) > 0)
	if err != nil {
		return nil, errors.Join(errNotTried, err)
	}
	j.leases = append(j.leases, l.id)
	if !e.Resumable() {
		s.own.add(s.entryKey(e.Tenant, e.Name(), e.ID), e)
	}
	w := s.putWrite(e, j.value, l.id)
	w.Must = len(j.open) > 0
	out, err := s.commits.Do(ctx, w)
	switch {
	case out.applied:
		placed := *e
		placed.Number, placed.Handle, placed.Patient = s.number(out.revision), l.id, false
		return &placed, nil
	case isLeaseNotFound(err):
		return nil, err
	case err != nil && !certain(err):
		j.open = append(j.open, l.id)
		return nil, err
	}
	s.leases.give(e.Tenant, e.TTL, l.id)
	if err != nil {
		return nil, err
	}
	found, err := s.find(ctx, e)
	if err == nil && found == nil {
		err = errGoneMeanwhile
	}
	return found, err
}

// certain reports whether a write that failed was not executed and never will be.
func certain(err error) bool {
	return refused(err) || errors.Is(err, store.ErrNotSent) || errors.Is(err, lock.Overloaded)
}

// stands has the attempts ended that did not write the entry, which may be gone. One that commits after the
// entry was removed would bring it back.
func (j *joining) stands(placed *lock.Entry) {
	var late []int64
	for _, l := range j.open {
		if placed == nil || l != placed.Handle {
			late = append(late, l)
		}
	}
	if len(late) > 0 {
		j.store.orphans.Add(&orphan{leases: late}, j.store.leases.seconds(j.entry.TTL))
	}
}

// giveUp ends a call that does not know what stands, and reports whether something may.
// Nobody can come back for an entry that is not resumable, so it is taken back. A retry
// can join one that is, or it lapses by its lease.
func (j *joining) giveUp() (ambiguous bool) {
	ambiguous = len(j.open) > 0
	if ambiguous && !j.entry.Resumable() {
		j.store.orphans.Add(&orphan{entry: j.entry, leases: j.open}, j.store.leases.seconds(j.entry.TTL))
	}
	return ambiguous
}
