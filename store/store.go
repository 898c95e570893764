package store

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Store keeps the entries in order. It is the only state there is: whatever a
// replica holds in memory is a view of it.
//
// Every method returns a *lock.Error, and every call ends within the deadline
// that the store puts on it, whatever ctx allows. [lock.StoreUnavailable] means
// that the store could not be asked; it has OutcomeUnknown set if the write may have
// happened. [lock.Overloaded] means that more writes are waiting than can be
// written in time, and nothing was or will be written. It comes at once, unless the
// store has become much slower since. An Enqueue that was admitted with many others may
// take longer than that deadline, for as long as they are being written.
type Store interface {
	// Enqueue writes e into the queues of all its claims, atomically and at one
	// number, and binds it to a lease of e.TTL that starts no earlier than the
	// call. It returns the entry with Number and Handle set. The number is
	// greater than that of every entry written before into any of the queues,
	// for ever.
	//
	// If e is Resumable and the tenant has an entry with e.ID, nothing is written
	// and that entry is returned as it stands: a retry joins its first attempt.
	// written tells whether this very call wrote the entry. If such an entry ended
	// and its end is remembered, the error is [lock.Lost] with the reason, and
	// nothing is written: an idempotency key is used once.
	//
	// The id of an entry that is not Resumable is fresh: the caller passes it to
	// Enqueue once. If the outcome of its write is unknown when the call ends, the
	// error has OutcomeUnknown set, and the store goes on to learn the outcome and takes the
	// entry back. One that is Resumable stays, for a retry to join it, or may yet be
	// written, as long as none with its id was there since: after a retry stands, also
	// one by another client, and has gone, for whatever reason, no attempt from before
	// writes anything.
	//
	// A call writes its entry once. If it was removed before the call has learned that
	// it was written, and its id is fresh, the error is [lock.Lost] with the reason, or has
	// OutcomeUnknown set if that cannot be told. If it was the call itself that took it back, the
	// error is [ErrTakenBack]: who still wants the lock passes an entry with another id. Whatever
	// became of the call, no attempt of it is left that could write the entry after it was seen to be
	// there or was taken back.
	//
	// An entry that lingers may be written a moment later than others.
	Enqueue(ctx context.Context, e *lock.Entry) (placed *lock.Entry, written bool, err error)

	// Remove takes exactly the entry e out of all its queues and records why in
	// the same atomic write. An entry that is not there, for whatever reason,
	// gives [lock.Lost] with no reason; nothing is then written. So it is safe to
	// repeat. Feeds tell [lock.Withdrawn] like any reason, but it is not among the
	// remembered ends.
	//
	// The removal happens only if each of while is in the store at that number too:
	// who decides on a view that may be late so removes nothing that has come to
	// hold meanwhile. If one of them is not there, and e is, the error is
	// [lock.Changed].
	Remove(ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry) error

	// RemoveAndPut removes e as Remove does, and puts a small record, in the same atomic
	// write: both happen, or nothing does. note, if it is not nil, is told by feeds with the
	// end, unless the tenant has had very many. p may not be Bound.
	//
	// Errors are those of Remove and of [RecordStore].Put: [lock.Lost] says that e is not
	// there; [lock.Changed] or [lock.NotFound] that the record is not as p says. If neither
	// is, it is one of them. A call whose answer is lost finds out by the record whether
	// it happened; if it cannot, the error has OutcomeUnknown set, and the removal may yet happen,
	// with the record. It is safe to repeat, as e is removed once.
	RemoveAndPut(
		ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p RecordPut,
	) error

	// Renew starts e's lease anew for its full TTL and then proves, by a read
	// that no committed removal can be missing from, that e is there. Gone gives
	// [lock.Lost] with no reason, even if a lease could still be refreshed.
	Renew(ctx context.Context, e *lock.Entry) error

	// Remaining returns how long e's lease lasts from now on if nobody renews it,
	// as far as the store can tell, or [lock.Lost]. It is for people to look at;
	// nothing may be decided by it.
	Remaining(ctx context.Context, e *lock.Entry) (time.Duration, error)

	// Queue reads a lock's entries in order, as of the returned number, which is
	// no older than the call.
	Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error)

	// Newest returns the store's newest number, no older than the call.
	Newest(ctx context.Context) (uint64, error)

	// Watch feeds f with a full view and then with every change after it, in
	// order and without gaps, until ctx ends; f is called from one goroutine at
	// a time and must not block. After a gap or a doubt of any kind it starts
	// over with a full view. It returns when ctx ends.
	Watch(ctx context.Context, f Watcher)

	// Distrust tells the store that a genuine token carries number, although the
	// store's newest is smaller: the store lost its past (a backup was restored).
	// The store reads anew before it believes that. If it is so, it must refuse
	// Enqueue, here and on all replicas and after restarts, until an operator
	// gives it a fence floor above number.
	Distrust(ctx context.Context, number uint64) error

	// Refusal returns why nothing may be granted at the moment, as far as this
	// client knows: a [lock.StoreUnavailable], or nil. It asks nobody and does not
	// block. While Enqueue refuses because the store lost its past, or that is being
	// looked into, entries from before can come to hold in a view; whoever grants
	// them has to ask.
	Refusal() error
}
