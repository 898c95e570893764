package lock

import (
	"cmp"
	"slices"
	"time"
)

// ID names one entry forever. It is chosen before the write, so that the caller can look the
// entry up in the store after a lost answer.
type ID string

// Mode says which other claims may hold the lock at the same time.
type Mode string

// The modes of a claim.
const (
	Exclusive Mode = "exclusive" // alone
	Shared    Mode = "shared"    // with other shared claims
	Semaphore Mode = "semaphore" // with others, while their permits stay within the limit
)

// Claim is what an entry asks of one lock.
type Claim struct {
	Name string
	Mode Mode

	// Limit is how many permits a semaphore has, as far as this claim is concerned: the claims of one
	// semaphore may differ. Permits is how many of them it takes, 1 or more. Otherwise both are 0.
	Limit, Permits int
}

// MaxLimit is the greatest limit of a semaphore.
const MaxLimit = 1_000_000

// Agrees reports whether two claims may be on one lock at a time: both or neither are for a
// semaphore.
func (c Claim) Agrees(other Claim) bool {
	return (c.Mode == Semaphore) == (other.Mode == Semaphore)
}

// Takes returns what the claim adds to the permits that a front has taken: 1 in other modes, so
// that only an empty front has taken none.
func (c Claim) Takes() int { return max(1, c.Permits) }

// Entry is one acquisition of one or several locks, waiting or held. Once it is stored, it never
// changes, except that an entry with Any leaves queues once; see [Entry.Narrowed].
type Entry struct {
	ID     ID
	Tenant string
	Claims []Claim // in canonical order; see [Canonical]
	Set    bool    // taken as a lock set, even if it has one claim

	// Any is how many of its locks a set asks for; 0 is all. Order has the indices of Claims in the
	// order of the request, while there are more claims than that; see [Entry.Choosing].
	Any   int
	Order []int

	// Holder is the name that the client gives itself. Named reports that the request gave it;
	// otherwise it is the token's subject.
	Holder   string
	Named    bool
	Subject  string // of the bearer token, if the request named the holder; see [Entry.Worker]
	Metadata map[string]string

	TTL        time.Duration // the lease
	EnqueuedAt time.Time     // by the clock of the replica that took the request
	WaitUntil  time.Time     // when the wait ends at the latest

	// Async means that the entry waits without a connection: the replicas keep its position until
	// WaitUntil, also after its client disconnects.
	Async bool

	// OnlyNewest makes the entry leave while it waits, when a later entry with OnlyNewest that queues
	// too is in one of its queues.
	OnlyNewest bool

	// Callback receives the grant of an Async entry, or is nil. Only the webhook sender
	// reads it; no answer and no log shows it.
	Callback *Callback

	// AskWithin is the time within which the entry asks the holders to finish, if it has to wait;
	// nil asks for nothing. See [Entry.Asks].
	AskWithin *time.Duration

	// Trace is the W3C traceparent of the request that made the entry, or "".
	Trace string

	// Request identifies the parameters that a retry with the same
	// idempotency key must repeat. Empty for a request without such a key.
	Request string

	// Lingers is set before the write of an entry that has others in front, so that the write is not
	// urgent. The store does not keep it.
	Lingers bool

	// Admitted is the version of the tenant's closures by which the entry may join, 0 if there are
	// none. The write of the entry compares it, and the store does not keep it.
	Admitted uint64

	// Opaque marks an entry that could not be read: only its id, its tenant, its number and one of
	// its locks are known.
	Opaque bool

	// Number is the entry's position in all its queues and its fence. The store sets it at the one
	// write; before that it is 0.
	Number uint64

	// Handle belongs to the store that wrote the entry (an etcd lease, for example) and is
	// meaningless elsewhere.
	Handle int64
}

// Worker identifies the holder of Named entries. Clients choose holders, but not subjects, so a
// client cannot impersonate another subject's worker.
type Worker struct{ Tenant, Subject, Holder string }

// Worker returns the worker that the entry is a step of.
func (e *Entry) Worker() Worker { return Worker{e.Tenant, e.Subject, e.Holder} }

// MaxTTL is the longest lease that can be configured, because a dead holder blocks its lock for
// that long. Fencepost never wrote an entry with more.
const MaxTTL = 7 * 24 * time.Hour

// Canonical sorts claims by the bytes of their names, the order in which sets
// are stored and shown.
func Canonical(claims []Claim) { slices.SortFunc(claims, byName) }

// IsCanonical reports whether claims are in the order of [Canonical].
func IsCanonical(claims []Claim) bool { return slices.IsSortedFunc(claims, byName) }

func byName(a, b Claim) int { return cmp.Compare(a.Name, b.Name) }

// Name is the name of the entry's first lock: its only one unless it is a set.
func (e *Entry) Name() string { return e.Claims[0].Name }

// Tries reports whether the entry must leave at once if it does not hold.
func (e *Entry) Tries() bool { return e.WaitUntil.IsZero() }

// Resumable reports whether a client that lost its connection can come back to
// the entry by an idempotency key.
func (e *Entry) Resumable() bool { return e.Request != "" }

// Recoverable reports whether a client that learned nothing of the entry's write can still come to
// it: by an idempotency key, or by the callback of its grant.
func (e *Entry) Recoverable() bool { return e.Resumable() || e.Callback != nil }

// Reason is why an entry ended.
type Reason string

// The reasons for which entries end.
const (
	Released    Reason = "released"     // by its client
	Expired     Reason = "expired"      // by the store: no client renewed the lease
	Revoked     Reason = "revoked"      // by an operator
	WaitTimeout Reason = "wait_timeout" // it waited up to its limit
	// it closed a cycle of waits, and no client was connected
	Deadlocked Reason = "deadlock"
	Mismatched Reason = "mode_mismatch" // the same: the lock was in use in another mode
	Superseded Reason = "superseded"    // only the newest was to wait, and a later entry joined
	Unknown    Reason = "unknown"       // it ended too long ago

	// Withdrawn entries were removed by the replica that wrote them before any client learned of
	// them. The store keeps no record of them.
	Withdrawn Reason = "withdrawn"
)

// Note is what an operator states about an end that it caused: its subject, and why. The entry's
// tenant sees both.
type Note struct {
	By     string // the subject of the bearer token
	Reason string // free text
}
