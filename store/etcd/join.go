package etcd

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// joining is one call of Enqueue: attempts to write an entry until one stands. Each attempt has
// its own lease.
type joining struct {
	store  *Store
	entry  *lock.Entry
	value  []byte
	leases []int64 // of all attempts

	// The last attempt may have happened, or still may, with that revision of the writer's key.
	unsettled bool
	writer    int64
	open      []int64 // the leases of attempts that were unsettled once

	withdrawn int64 // the revision of the key's mark to replace; 0 if there is none

	// due is when the call ends. Time that its write spends behind other writes extends it, but not
	// beyond last.
	due, last time.Time
}

func (s *Store) join(
	ctx context.Context, e *lock.Entry, value []byte,
) (*joining, *lock.Entry, error) {
	due := time.Now().Add(s.timeout)
	j := &joining{store: s, entry: e, value: value, due: due, last: due.Add(batch.MostPending)}
	placed, err := j.run(ctx)
	return j, placed, err
}

func (j *joining) run(ctx context.Context) (*lock.Entry, error) {
	for {
		if err := j.store.trust.Refusal(); err != nil {
			err.OutcomeUnknown = j.giveUp()
			return nil, err
		}
		placed, err := j.attempt(ctx)
		if err == nil {
			j.endOthers(placed)
			return placed, nil
		}
		if errors.Is(err, errWithdrawn) {
			continue
		}
		if used := usedUp(err); used != nil {
			return nil, used // the mark of the key keeps late attempts from writing
		}
		if full := (*lock.Error)(nil); errors.As(err, &full) && full.Code == lock.Overloaded {
			full.OutcomeUnknown = j.giveUp()
			return nil, full
		}
		if final(err) || store.IsGone(ctx) || j.store.closing.Err() != nil || j.pause(ctx) != nil {
			return nil, unavailable(err, "enqueue", j.giveUp())
		}
	}
}

// errNotTried marks an attempt that ended before any write.
var errNotTried = errors.New("nothing was written")

func (j *joining) pause(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	return store.Pause(ctx, 20*time.Millisecond)
}

// find reads the entry.
func (j *joining) find(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	l, err := hedged(
		ctx, func(ctx context.Context) (look, error) { return j.store.lookFor(ctx, j.entry) },
	)
	if err == nil {
		j.withdrawn = l.withdrawn
	}
	return l.found, err
}

// final reports whether another attempt cannot succeed.
func final(err error) bool {
	return isNoSpace(err) || refused(err) && !isLeaseNotFound(err) ||
		errors.Is(err, store.ErrTakenBack) || errors.Is(err, store.ErrClosuresChanged)
}

// attempt writes the entry, or finds that an earlier attempt has.
func (j *joining) attempt(ctx context.Context) (*lock.Entry, error) {
	if j.unsettled {
		if found, err := j.settle(ctx); found != nil || err != nil {
			return found, err
		}
	}
	return j.try(ctx)
}

// settle finds out what became of the last attempt: once it is shut out, a read shows it. A fresh
// id that is missing may have been there, and someone has removed it. It is not written again.
func (j *joining) settle(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	if err := j.store.writer.shutOut(ctx, j.writer); err != nil {
		return nil, err
	}
	found, err := j.find(ctx)
	if err != nil {
		return nil, err
	}
	j.unsettled = false
	if found == nil && !j.entry.Resumable() {
		return nil, store.ErrTakenBack
	}
	return found, nil
}

// doubt notes that an attempt may have happened, or still may.
func (j *joining) doubt(lease, writer int64) {
	j.unsettled, j.writer = true, writer
	j.open = append(j.open, lease)
}

// waited extends the deadline by the time that a write was pending.
func (j *joining) waited(pending time.Duration) {
	if j.due = j.due.Add(pending); j.due.After(j.last) {
		j.due = j.last
	}
}

// lease decides whether the write can be made in time, and gets a lease for it. So a rejection
// costs no work.
func (j *joining) lease(ctx context.Context, w *write) error {
	release, err := j.store.commits.Reserve(w)
	if err != nil {
		return err
	}
	defer release()
	l, pending, err := j.store.leases.take(ctx, j.entry, j.due)
	j.waited(pending)
	if err != nil {
		return errors.Join(errNotTried, err)
	}
	j.leases = append(j.leases, l.id)
	w.Payload.under(l.id)
	return nil
}

// try makes one attempt. It reuses the lease of an attempt that certainly wrote nothing.
func (j *joining) try(ctx context.Context) (*lock.Entry, error) {
	s, e := j.store, j.entry
	w := s.putWrite(e, j.value, j.withdrawn)
	if err := j.lease(ctx, w); err != nil {
		return nil, err
	}
	l := j.leases[len(j.leases)-1]
	if !e.Resumable() {
		s.own.add(s.entryKey(e.Tenant, e.Name(), e.ID), e)
	}
	w.Must, w.Due, w.Gone = true, j.due, store.Gone(ctx)
	out, err := s.commits.Do(ctx, w)
	j.waited(w.Waited())
	switch {
	case out.applied:
		placed := *e
		placed.Number, placed.Handle = s.number(out.revision), l
		placed.Lingers, placed.Admitted = false, 0
		return &placed, nil
	case isLeaseNotFound(err):
		return nil, err
	case isNoSpace(err):
		return j.beyondQuota(ctx, l, err)
	case errors.Is(err, batch.ErrUnknown): // it may be sent with today's revision, and with no later
		j.doubt(l, s.writer.current())
		return nil, err
	case err != nil && !certain(err):
		j.doubt(l, out.writer)
		return nil, err
	}
	j.leases = j.leases[:len(j.leases)-1] // another call may write under it
	s.leases.give(e.Tenant, e.TTL, l)
	if err != nil {
		return nil, err
	}
	before := j.withdrawn
	found, err := j.find(ctx)
	switch {
	case err != nil || found != nil:
		return found, err
	case j.withdrawn != before:
		return nil, errWithdrawn
	}
	if err := j.shut(ctx); err != nil {
		return nil, err
	}
	return nil, errGoneMeanwhile
}

// beyondQuota finds out what became of an attempt to which etcd answered that it is full: etcd
// may have run it. It reuses the lease only if no caller can have found and removed the entry
// meanwhile.
func (j *joining) beyondQuota(ctx context.Context, l int64, full error) (*lock.Entry, error) {
	found, err := j.find(ctx)
	switch {
	case err != nil && usedUp(err) == nil:
		j.doubt(l, j.store.writer.current())
		return nil, full
	case found != nil && found.Handle == l:
		return found, nil
	case err == nil && found == nil && !j.entry.Resumable():
		j.store.leases.give(j.entry.Tenant, j.entry.TTL, l)
	default:
		j.store.endLease(j.entry, l)
	}
	if err == nil && found == nil {
		err = full
	}
	return found, err
}

// certain reports whether a failed write did not run and never will.
func certain(err error) bool {
	return refused(err) || errors.Is(err, batch.ErrNotSent) || errors.Is(err, lock.Overloaded)
}

// endOthers ends the leases of the attempts that did not write the entry.
func (j *joining) endOthers(placed *lock.Entry) {
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

// giveUp ends a call with an unknown result, and reports whether an entry may stand. If the entry
// is not resumable, no client can come back for it, so giveUp removes it. A resumable one that
// exists stays: a retry can join it, or its lease ends. No attempt happens later.
func (j *joining) giveUp() (unknown bool) {
	if j.unsettled {
		j.store.orphans.Add(
			&orphan{entry: j.entry, leases: j.open, writer: j.writer},
			j.store.leases.seconds(j.entry.TTL),
		)
		return true
	}
	j.endOthers(nil)
	return false
}
