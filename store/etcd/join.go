package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// joining is one call of Enqueue: attempts to write an entry until one stands. Each attempt has
// its own lease. An attempt with an unknown outcome may still commit long after the call, until
// its lease is revoked.
type joining struct {
	store    *Store
	entry    *lock.Entry
	value    []byte
	leases   []int64 // of all attempts
	open     []int64 // of the attempts with unknown outcomes
	revoking []int64 // leases whose revocation was requested: it may happen any time
	since    int64   // a revision before the first attempt
	looked   int64   // when a fresh entry was last looked for
	absent   int64   // when it was missing, before the lease of any open attempt was revoked

	withdrawn int64 // the revision of the key's mark to replace; 0 if there is none

	// due is when the call ends. Time that its write spends behind other writes extends it, but not
	// beyond last.
	due, last time.Time
}

func (s *Store) join(
	ctx context.Context, e *lock.Entry, value []byte,
) (*joining, *lock.Entry, error) {
	due := time.Now().Add(s.timeout)
	j := &joining{
		store: s, entry: e, value: value, since: s.revision(s.trust.Sent()), due: due,
		last: due.Add(batch.MostPending),
	}
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
		// The outcome may be unknown, but the id is unique: an entry with it is this call's, and the
		// comparison prevents a second write while it exists.
		found, err := j.find(ctx)
		if used := usedUp(err); used != nil {
			return nil, used // the mark of the key keeps late attempts from writing
		}
		if err == nil && found != nil {
			j.endOthers(found)
			return found, nil
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

// find reads the entry. An entry under a lease that may be revoked soon counts as gone, and is
// reported to no client.
func (j *joining) find(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	l, err := hedged(
		ctx, func(ctx context.Context) (look, error) { return j.store.lookFor(ctx, j.entry) },
	)
	if err == nil {
		j.withdrawn, j.looked = l.withdrawn, l.at
	}
	if l.found != nil && slices.Contains(j.revoking, l.found.Handle) {
		return nil, nil //nolint:nilnil // as it says
	}
	return l.found, err
}

// final reports whether another attempt cannot succeed.
func final(err error) bool {
	return isNoSpace(err) || refused(err) && !isLeaseNotFound(err) || errors.Is(
		err, errForgotten,
	) || errors.Is(err, store.ErrTakenBack) || errors.Is(err, store.ErrClosuresChanged)
}

// attempt writes the entry. Under a fresh id it first makes sure that no earlier attempt has
// written it, because that entry may have been removed since.
func (j *joining) attempt(ctx context.Context) (*lock.Entry, error) {
	if len(j.open) > 0 && !j.entry.Resumable() {
		if found, err := j.exclude(ctx); found != nil || err != nil {
			return found, err
		}
	}
	return j.try(ctx)
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
	w.Must = len(j.open) > 0 // what may have happened must not be rejected any more
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
	case err != nil && !certain(err):
		j.open = append(j.open, l)
		return nil, err
	}
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
		j.open = append(j.open, l)
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

// endOthers ends the attempts that did not write the entry, which may be gone. An attempt that
// commits after the entry's removal would bring it back.
func (j *joining) endOthers(placed *lock.Entry) {
	var late []int64
	for _, l := range j.open {
		if l != placed.Handle {
			late = append(late, l)
		}
	}
	if len(late) > 0 {
		j.store.orphans.Add(&orphan{leases: late}, j.store.leases.seconds(j.entry.TTL))
	}
}

// giveUp ends a call with an unknown result, and reports whether an entry may stand. If the entry
// is not resumable, no client can come back for it, so giveUp removes it. A resumable entry that
// exists stays: a retry can join it, or its lease ends. Writes that would create it later do not
// take effect.
func (j *joining) giveUp() (unknown bool) {
	unknown = len(j.open) > 0
	if unknown {
		j.store.orphans.Add(
			&orphan{entry: j.entry, leases: j.open, withdrawn: j.withdrawn},
			j.store.leases.seconds(j.entry.TTL),
		)
	}
	return unknown
}
