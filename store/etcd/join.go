package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// joining is one call of Enqueue: its attempts to write an entry. Each has its own lease.
type joining struct {
	store  *Store
	entry  *lock.Entry
	value  []byte
	leases []int64 // of all attempts

	writer int64   // the revision of the writer's key, of the last attempt with an unknown outcome
	open   []int64 // the leases of such attempts

	withdrawn int64 // the revision of the key's mark to replace; 0 if there is none
}

var _ engine.Attempts = (*joining)(nil)

// Find implements engine.Attempts.
func (j *joining) Find(ctx context.Context) (found *lock.Entry, moved bool, err error) {
	l, err := hedged(
		ctx, func(ctx context.Context) (look, error) { return j.store.lookFor(ctx, j.entry) },
	)
	if err != nil {
		return nil, false, err
	}
	moved, j.withdrawn = l.withdrawn != j.withdrawn, l.withdrawn
	return l.found, moved, nil
}

// ShutOut implements engine.Attempts.
func (j *joining) ShutOut(ctx context.Context) error {
	return j.store.writer.shutOut(ctx, j.writer)
}

// Admitted implements engine.Attempts.
func (j *joining) Admitted(ctx context.Context) error {
	a := j.store.admission(j.entry)
	resp, err := j.store.read(ctx, "read the closures", &pb.RangeRequest{
		Key: []byte(a.key), KeysOnly: true,
	})
	if err != nil {
		return err
	}
	now := int64(0)
	if len(resp.Kvs) > 0 {
		now = resp.Kvs[0].ModRevision
	}
	if now != a.revision {
		return store.ErrClosuresChanged
	}
	return nil
}

// Ours implements engine.Attempts. The lease distinguishes the entry from another caller's.
func (j *joining) Ours(e *lock.Entry) bool { return slices.Contains(j.leases, e.Handle) }

// others are the leases of attempts that did not write the entry kept.
func (j *joining) others(kept *lock.Entry) []int64 {
	return slices.DeleteFunc(
		slices.Clone(j.open), func(l int64) bool { return kept != nil && l == kept.Handle },
	)
}

// Open implements engine.Attempts.
func (j *joining) Open(kept *lock.Entry) bool { return len(j.others(kept)) > 0 }

// End implements engine.Attempts: it ends the leases.
func (j *joining) End(ctx context.Context, kept *lock.Entry) error {
	for _, l := range j.others(kept) {
		if err := j.store.leases.revoke(ctx, l); err != nil {
			return err
		}
		j.open = slices.DeleteFunc(j.open, func(open int64) bool { return open == l })
	}
	return nil
}

// lease decides whether the write can be made in time, and gets a lease for it. So a rejection
// costs no work.
func (j *joining) lease(
	ctx context.Context, w *write, due time.Time,
) (l int64, pending time.Duration, err error) {
	release, err := j.store.commits.Reserve(w)
	if err != nil {
		return 0, 0, err
	}
	defer release()
	taken, pending, err := j.store.leases.take(ctx, j.entry, due)
	if err != nil {
		return 0, pending, errors.Join(batch.ErrNotSent, err)
	}
	w.Payload.under(taken.id)
	return taken.id, pending, nil
}

// Put implements engine.Attempts. It reuses the lease of an attempt that certainly wrote nothing.
func (j *joining) Put(
	ctx context.Context, due func(pending time.Duration) time.Time,
) (placed *lock.Entry, pending time.Duration, err error) {
	s, e := j.store, j.entry
	w := s.putWrite(e, j.value, j.withdrawn)
	l, pending, err := j.lease(ctx, w, due(0))
	if err != nil {
		return nil, pending, j.translated(err)
	}
	j.leases = append(j.leases, l)
	if !e.Resumable() {
		s.own.add(string(s.primaryKey(e)), e)
	}
	w.Must, w.Due, w.Gone = true, due(pending), store.Gone(ctx)
	out, err := s.commits.Do(ctx, w)
	pending += w.Waited()
	switch {
	case out.applied:
		written := *e
		written.Number, written.Handle = s.number(out.revision), l
		written.Lingers, written.Admitted = false, 0
		return &written, pending, nil
	case isLeaseNotFound(err):
		return nil, pending, errors.Join(batch.ErrNotSent, err)
	case isNoSpace(err):
		placed, err = j.beyondQuota(ctx, l, err, due(pending))
		return placed, pending, err
	case errors.Is(err, batch.ErrUnknown): // it may be sent with today's revision, and with no later
		j.doubt(l, s.writer.current())
		return nil, pending, err
	case err != nil && !certain(err):
		j.doubt(l, out.writer)
		return nil, pending, err
	}
	j.leases = j.leases[:len(j.leases)-1] // another call may write under it
	s.leases.give(e.Tenant, e.TTL, l)
	if err == nil {
		return nil, pending, engine.ErrConflict
	}
	return nil, pending, j.translated(err)
}

// translated returns the error of an attempt that wrote nothing.
func (*joining) translated(err error) error {
	if isNoSpace(err) || refused(err) && !isLeaseNotFound(err) {
		return unavailable(err, "enqueue", false)
	}
	return err
}

// doubt notes that an attempt may have happened, or still may, with a revision of the writer's key.
func (j *joining) doubt(lease, writer int64) {
	j.writer = writer
	j.open = append(j.open, lease)
}

// beyondQuota finds out what became of an attempt to which etcd answered that it is full: etcd
// may have run it. It reuses the lease only if no caller can have found and removed the entry
// meanwhile.
func (j *joining) beyondQuota(
	ctx context.Context, l int64, full error, due time.Time,
) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	final := unavailable(full, "enqueue", false)
	found, _, err := j.Find(ctx)
	switch {
	case err != nil && engine.UsedUp(err) == nil:
		j.doubt(l, j.store.writer.current())
		return nil, &engine.Full{Cause: final}
	case found != nil && found.Handle == l:
		return found, nil
	case err == nil && found == nil && !j.entry.Resumable():
		j.store.leases.give(j.entry.Tenant, j.entry.TTL, l)
	default:
		j.store.endLease(j.entry, l)
	}
	if err == nil && found == nil {
		return nil, final
	}
	return found, err
}

// certain reports whether a failed write did not run and never will.
func certain(err error) bool {
	return refused(err) || errors.Is(err, batch.ErrNotSent) || errors.Is(err, lock.Overloaded)
}
