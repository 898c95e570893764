package service

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
// that the store could not be asked; it is Ambiguous if the write may have
// happened.
type Store interface {
	// Enqueue writes e into the queues of all its claims, atomically and at one
	// number, and binds it to a lease of e.TTL that starts no earlier than the
	// call. It returns the entry with Number and Handle set. The number is
	// greater than that of every entry written before into any of the queues,
	// for ever.
	//
	// If e is Resumable and the tenant has an entry with e.ID in e's first lock,
	// nothing is written and that entry is returned as it stands: a retry joins its
	// first attempt. The id of an entry that is not Resumable is fresh: the caller
	// passes it to Enqueue once. After an Ambiguous error the entry may be queued;
	// it then lapses by its lease, unless a retry joins it.
	//
	// A Patient entry may be written a moment later than others.
	Enqueue(ctx context.Context, e *lock.Entry) (*lock.Entry, error)

	// Remove takes exactly the entry e out of all its queues and records why in
	// the same atomic write. An entry that is not there, for whatever reason,
	// gives [lock.Lost] with no reason; nothing is then written. So it is safe to
	// repeat. Feeds tell [lock.Withdrawn] like any reason, but it is not among the
	// remembered ends.
	Remove(ctx context.Context, e *lock.Entry, why lock.Reason) error

	// Refresh starts e's lease anew for its full TTL and then proves, by a read
	// that no committed removal can be missing from, that e is there. Gone gives
	// [lock.Lost] with no reason, even if a lease could still be refreshed.
	Refresh(ctx context.Context, e *lock.Entry) error

	// Remaining returns how long e's lease lasts from now on if nobody renews it,
	// as far as the store can tell, or [lock.Lost]. It is for people to look at;
	// nothing may be decided by it.
	Remaining(ctx context.Context, e *lock.Entry) (time.Duration, error)

	// Queue reads a lock's entries in order, as of the returned number, which is
	// no older than the call.
	Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error)

	// Newest returns the store's newest number, no older than the call.
	Newest(ctx context.Context) (uint64, error)

	// Follow feeds f with a full view and then with every change after it, in
	// order and without gaps, until ctx ends; f is called from one goroutine at
	// a time and must not block. After a gap or a doubt of any kind it starts
	// over with a full view. It returns when ctx ends.
	Follow(ctx context.Context, f Follower)

	// Distrust tells the store that a genuine token carries number, although the
	// store's newest is smaller: the store lost its past (a backup was restored).
	// It must refuse Enqueue, here and on all replicas and after restarts, until
	// an operator gives it a fence floor above number.
	Distrust(ctx context.Context, number uint64) error
}

// Follower, Snapshot, Change and Ended are the domain's; see there.
type (
	Follower = lock.Follower
	Snapshot = lock.Snapshot
	Change   = lock.Change
	Ended    = lock.Ended
)
