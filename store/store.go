package store

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Store keeps the entries in order. It is the only state: everything in a replica's memory is a
// view of it.
//
// Every method returns a *lock.Error, and every call ends within the store's own deadline,
// whatever ctx allows. [lock.StoreUnavailable] means that the store did not answer; it has
// OutcomeUnknown set if the write may have happened. [lock.Overloaded] means that too many writes
// are pending, and that nothing was or will be written. It comes at once, unless the store has
// become much slower since. An Enqueue that was admitted with many others may take longer than
// that deadline, while they are being written.
type Store interface {
	// Enqueue writes e into the queues of all its claims, atomically and at one number, and binds it
	// to a lease of e.TTL that starts no earlier than the call. It returns the entry with Number and
	// Handle set. The number is greater than that of every entry ever written before into any of the
	// queues.
	//
	// If e is Resumable and the tenant has an entry with e.ID, Enqueue writes nothing and returns
	// that entry: a retry joins its first attempt. written reports whether this very call wrote the
	// entry. If such an entry ended and the store still has its end, the error is [lock.Lost] with
	// the reason, and nothing is written: an idempotency key is used once.
	//
	// The id of an entry that is not Resumable is fresh: the caller passes it to Enqueue once. If
	// the outcome of its write is unknown when the call ends, the error has OutcomeUnknown set. The
	// store then continues to learn the outcome, and removes the entry. A Resumable entry stays, for
	// a retry to join it, or may still be written. That ends once a retry's entry has existed, even
	// another client's: after that entry is gone, no earlier attempt writes anything.
	//
	// A call writes its entry once. If the entry has a fresh id, and is missing after a write with
	// an unknown outcome, the error is [ErrNotWritten]: it was never there, or was removed before the
	// call learned of its write. A caller that still wants the lock passes an entry with another id.
	// After the entry was seen or removed, no attempt of the call can write it again.
	//
	// An entry is written only if the record at [ClosuresKey] of its tenant has the version
	// e.Admitted, or does not exist and that is 0. Otherwise the error is [ErrClosuresChanged]. So
	// no entry joins after a change of the closures that its caller has not seen, however late a
	// write happens. Where Enqueue writes nothing because an entry has the id, nothing is compared.
	//
	// An entry that lingers may be written a moment later than others.
	Enqueue(ctx context.Context, e *lock.Entry) (placed *lock.Entry, written bool, err error)

	// Remove removes exactly the entry e from all its queues and records why in the same atomic
	// write. If the entry does not exist, for whatever reason, the error is [lock.Lost] with no
	// reason, and nothing is written. So it is safe to repeat. Feeds report [lock.Withdrawn] like
	// any reason, but the store does not keep such ends.
	//
	// The removal happens only if each of while is in the store at that number too. So a decision on
	// a stale view never removes an entry that was granted meanwhile. If one of them is missing, and
	// e is not, the error is [lock.Changed].
	Remove(ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry) error

	// Narrow takes a choosing entry out of all its queues but those of kept, in one atomic write. kept
	// are e.Any of its claims, in canonical order. From then on the entry holds, because it is at the
	// front of these queues. It keeps its number, its lease and its handle. Narrow returns the entry
	// as it is then.
	//
	// An entry is narrowed once. If that has happened, Narrow writes nothing, and returns the entry
	// without an error. So a call is safe to repeat, and after an unknown outcome a repetition finds
	// out. If the entry does not exist, the error is [lock.Lost] with no reason. Narrow is a grant:
	// where Enqueue rejects all entries, it does so too.
	//
	// All other methods accept e as it was before too, and then mean the same entry. In while alone, a
	// choosing entry is one that is there and was not narrowed. So a caller that decided to remove a
	// choosing entry passes the entry itself in while, and gets [lock.Changed] if it now holds.
	Narrow(ctx context.Context, e *lock.Entry, kept []lock.Claim) (now *lock.Entry, err error)

	// RemoveAndPut removes e as Remove does, and puts a small record, in the same atomic write: both
	// happen, or neither. Feeds report note, if it is not nil, with the end, unless the tenant has
	// had very many. p may not be Bound.
	//
	// Errors are those of Remove and of [RecordStore].Put: [lock.Lost] means that e does not exist;
	// [lock.Changed] or [lock.NotFound] that the record is not as in p. If both fail, the error is
	// one of them. A call whose answer is lost finds out by the record whether it happened. If it
	// cannot, the error has OutcomeUnknown set, and the removal may still happen, with the record.
	// It is safe to repeat, because e is removed once.
	RemoveAndPut(
		ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p RecordPut,
	) error

	// Renew restarts e's lease for its full TTL. It then proves that e exists, by a read that sees
	// every committed removal. If e is gone, the error is [lock.Lost] with no reason, even if a
	// lease could still be renewed.
	Renew(ctx context.Context, e *lock.Entry) error

	// Remaining returns how long e's lease lasts without a renewal, as far as the store knows, or
	// [lock.Lost]. It is for display; no decision may depend on it.
	Remaining(ctx context.Context, e *lock.Entry) (time.Duration, error)

	// Queue reads a lock's entries in order, as of the returned number, which is no older than the
	// call.
	Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error)

	// Newest returns the store's newest number, no older than the call.
	Newest(ctx context.Context) (uint64, error)

	// Watch feeds f with a full view and then with every change after it, in order and without gaps,
	// until ctx ends. It calls f from one goroutine at a time; f must not block. After a gap or a
	// doubt of any kind it restarts with a full view. It returns when ctx ends.
	Watch(ctx context.Context, f Watcher)

	// Distrust reports that a genuine token carries number, although the store's newest number is
	// smaller: the store lost its past (a backup was restored). The store first reads again. If it
	// is so, it must reject Enqueue, on all replicas and after restarts, until an operator sets a
	// fence floor above number.
	Distrust(ctx context.Context, number uint64) error

	// Refusal returns why nothing may be granted at the moment, as far as this client knows: a
	// [lock.StoreUnavailable], or nil. It makes no call and does not block. While Enqueue fails
	// because the store may have lost its past, a view can show older entries as holders. A replica
	// has to check Refusal before it grants one.
	Refusal() error
}
