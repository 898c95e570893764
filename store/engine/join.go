package engine

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
)

// joinPause is the pause between two attempts to join.
const joinPause = 20 * time.Millisecond

// Attempts is a store's part in one call of [store.Store].Enqueue: single attempts to write one
// entry. They come one after the other, except that Put may still be running somewhere after it has
// returned. That is what [Attempts.ShutOut] ends.
type Attempts interface {
	// Put makes an attempt, and returns the entry with its number and handle. It ends with the
	// outcome, or at due(pending). pending is how long it has waited behind other writes. [Full] ends
	// the call, and the write may have happened. Else the error is
	// [ErrConflict] if a condition did not hold: the key exists, or has another mark than Find has
	// seen, or the closures are others. Then, and with [batch.ErrNotSent] and any *lock.Error,
	// nothing was or will be written. After any other error that is unknown.
	Put(
		ctx context.Context, due func(pending time.Duration) time.Time,
	) (placed *lock.Entry, pending time.Duration, err error)

	// Find returns the entry that has the id, or nil, as of a moment after all earlier writes of this
	// call. If the key is used up, the error is [lock.Lost] with the reason. If it has the mark of a
	// withdrawn entry, the next Put replaces it; moved reports that this is another one than before.
	Find(ctx context.Context) (found *lock.Entry, moved bool, err error)

	// Admitted returns [store.ErrClosuresChanged] if the closures are not those that admit the entry.
	Admitted(ctx context.Context) error

	// ShutOut returns when no Put that was made can happen any more.
	ShutOut(ctx context.Context) error

	// Ours reports whether one of the attempts has written the entry.
	Ours(e *lock.Entry) bool

	// Open reports whether the attempts have used anything that must be ended, apart from the entry
	// kept, which may be nil. End ends it, and may be called again.
	Open(kept *lock.Entry) bool
	End(ctx context.Context, kept *lock.Entry) error
}

// ErrConflict means that an attempt wrote nothing, because a condition did not hold.
var ErrConflict = errors.New("the entry, its key or the closures are not as they were")

// Joins makes the calls of Enqueue out of attempts. It is safe for concurrent use.
type Joins struct {
	Store   store.Store
	Trust   interface{ Refusal() *lock.Error }
	Timeout time.Duration   // of a call; while other writes proceed, batch.MostPending more
	Closing context.Context // ends when the store closes
	Cleaner *Cleaner        // of what calls leave behind
}

// join is one call of Enqueue.
type join struct {
	*Joins
	Attempts
	entry *lock.Entry

	unsettled bool // the last attempt may have happened, or still may

	// due is when the call ends. Time that its writes spend behind other writes extends it, but not
	// beyond last.
	due, last time.Time
}

// Enqueue writes an entry by attempts at it, as [store.Store].Enqueue requires.
func (js *Joins) Enqueue(
	ctx context.Context, e *lock.Entry, a Attempts,
) (placed *lock.Entry, written bool, err error) {
	due := time.Now().Add(js.Timeout)
	j := &join{Joins: js, Attempts: a, entry: e, due: due, last: due.Add(batch.MostPending)}
	if placed, err = j.run(ctx); err != nil {
		return nil, false, err
	}
	j.end(placed)
	return j.handOut(ctx, placed)
}

// handOut returns an entry, unless an answer since the call began proves that the store lost its
// past. In that case it removes the entry. If that fails now and no client can come back for the
// entry, it is removed later.
func (j *join) handOut(ctx context.Context, e *lock.Entry) (*lock.Entry, bool, error) {
	written, refusal := j.Ours(e), j.Trust.Refusal()
	if refusal == nil {
		return e, written, nil
	}
	if written {
		refusal.OutcomeUnknown = j.remove(ctx, e) != nil
		if refusal.OutcomeUnknown && !e.Recoverable() {
			j.Cleaner.Add(func(ctx context.Context) error { return j.remove(ctx, e) }, e.TTL)
		}
	}
	return nil, false, refusal
}

// remove takes back what a call has written.
func (j *join) remove(ctx context.Context, e *lock.Entry) error {
	if err := j.Store.Remove(ctx, e, lock.Withdrawn); err != nil && !errors.Is(err, lock.Lost) {
		return err
	}
	return nil
}

func (j *join) run(ctx context.Context) (*lock.Entry, error) {
	for {
		if err := j.Trust.Refusal(); err != nil {
			return nil, j.giveUp(err)
		}
		placed, err := j.attempt(ctx)
		if err == nil {
			return placed, nil
		}
		final := (*lock.Error)(nil)
		switch {
		case errors.Is(err, errMoved):
			continue
		case UsedUp(err) != nil:
			j.end(nil)
			return nil, UsedUp(err) // the mark of the key keeps late attempts from writing
		case errors.As(err, &final):
			return nil, j.giveUp(final)
		case errors.Is(err, store.ErrNotWritten), errors.Is(err, store.ErrClosuresChanged),
			store.IsGone(ctx), j.Closing.Err() != nil, j.pause(ctx) != nil:
			return nil, j.giveUp(store.Unavailable(err, "enqueue", false))
		}
	}
}

// errMoved means that the key has the mark of a withdrawn entry, which the next attempt replaces.
var errMoved = errors.New("the entry of the key was withdrawn")

// errGoneMeanwhile means that what was in the way is gone again.
var errGoneMeanwhile = errors.New("the entry was removed at the same moment")

func (j *join) pause(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	return store.Pause(ctx, joinPause)
}

// attempt writes the entry, or finds that an earlier attempt has.
func (j *join) attempt(ctx context.Context) (*lock.Entry, error) {
	if j.unsettled {
		if found, err := j.settle(ctx); found != nil || err != nil {
			return found, err
		}
	}
	placed, pending, err := j.Put(ctx, j.dueAfter)
	j.due = j.dueAfter(pending)
	if err == nil {
		return placed, nil
	}
	full, final := (*Full)(nil), (*lock.Error)(nil)
	switch {
	case errors.Is(err, ErrConflict):
		return j.inTheWay(ctx)
	case errors.As(err, &full):
		j.unsettled = true
		return nil, full.Cause
	case !errors.Is(err, batch.ErrNotSent) && !errors.As(err, &final):
		j.unsettled = true
	}
	return nil, err
}

// dueAfter returns when the call ends if it has waited for other writes for so long.
func (j *join) dueAfter(pending time.Duration) time.Time {
	if due := j.due.Add(pending); due.Before(j.last) {
		return due
	}
	return j.last
}

// inTheWay returns the entry that made an attempt fail, or why there is none.
func (j *join) inTheWay(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	found, moved, err := j.Find(ctx)
	switch {
	case err != nil || found != nil:
		return found, err
	case moved:
		return nil, errMoved
	}
	if err := j.Admitted(ctx); err != nil {
		return nil, err
	}
	return nil, errGoneMeanwhile
}

// settle finds out what became of the last attempt: once it is shut out, a read shows it. A fresh
// id that is missing may have been there, and someone has removed it. It is not written again.
func (j *join) settle(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	if err := j.ShutOut(ctx); err != nil {
		return nil, err
	}
	found, _, err := j.Find(ctx)
	if err != nil {
		return nil, err
	}
	j.unsettled = false
	if found == nil && !j.entry.Resumable() {
		return nil, store.ErrNotWritten
	}
	return found, nil
}

// giveUp ends a call with an error, which states whether an entry may stand. If no client can come
// to it, it is removed in the background. A recoverable one that exists stays: a retry can join
// it, or its callback reports the grant, which must not be taken back then. The last attempt is
// shut out in the background.
func (j *join) giveUp(why *lock.Error) *lock.Error {
	if !j.unsettled {
		j.end(nil)
		return why
	}
	j.Cleaner.Add(j.takeBack, j.entry.TTL)
	why.OutcomeUnknown = true
	return why
}

// end ends what the attempts have used, except the entry kept.
func (j *join) end(kept *lock.Entry) {
	if j.Open(kept) {
		j.Cleaner.Add(func(ctx context.Context) error { return j.End(ctx, kept) }, j.entry.TTL)
	}
}

// takeBack shuts the last attempt out. Then it removes the entry if it exists and no client can
// come back for it, so that the feeds see the reason.
func (j *join) takeBack(ctx context.Context) error {
	if err := j.ShutOut(ctx); err != nil {
		return err
	}
	found, _, err := j.Find(ctx)
	switch {
	case UsedUp(err) != nil:
		found = nil // it is not there
	case err != nil:
		return err
	case found != nil && !j.Ours(found):
		found = nil
	case found != nil && !j.entry.Recoverable():
		if err := j.remove(ctx, found); err != nil {
			return err
		}
		found = nil
	}
	return j.End(ctx, found)
}

// UsedUp returns err as the error of an id that cannot be used again, or nil.
func UsedUp(err error) *lock.Error {
	var used *lock.Error
	if errors.As(err, &used) && used.Code == lock.Lost && used.Reason != "" {
		return used
	}
	return nil
}
