package lock

import (
	"cmp"
	"slices"
	"time"
)

// ID names one entry for ever. It is chosen before the entry is written, so
// that after a lost answer the store can be asked for it.
type ID string

// Mode says which other claims may hold the lock at the same time.
type Mode string

// The modes of a claim.
const (
	Exclusive Mode = "exclusive" // alone
	Shared    Mode = "shared"    // with other shared claims
	Semaphore Mode = "semaphore" // with up to Limit-1 other semaphore claims
)

// Claim is what an entry asks of one lock.
type Claim struct {
	Name  string
	Mode  Mode
	Limit int // of a semaphore: how many may hold at once; otherwise 0
}

// MaxLimit is the greatest limit of a semaphore.
const MaxLimit = 1_000_000

// Agrees reports whether two claims may be on one lock at a time: both or
// neither are of a semaphore, and their limits are the same.
func (c Claim) Agrees(other Claim) bool {
	return (c.Mode == Semaphore) == (other.Mode == Semaphore) && c.Limit == other.Limit
}

// Entry is one acquisition of one or several locks, waiting or held. Once it is
// in the store only the store's own view of its lease changes.
type Entry struct {
	ID     ID
	Tenant string
	Claims []Claim // in canonical order; see [Canonical]
	Set    bool    // taken as a lock set, even if it has one claim

	// Holder is the name that the client gives itself. Named says that the
	// request gave it, rather than the bearer token's subject.
	Holder   string
	Named    bool
	Subject  string // of the bearer token, if the request named the holder; see [Entry.Worker]
	Metadata map[string]string

	TTL        time.Duration // the lease
	EnqueuedAt time.Time     // by the clock of the replica that took the request
	WaitUntil  time.Time     // when waiting ends at the latest

	// Async says that no connection stands for the entry while it waits: the service
	// keeps its position until WaitUntil, also when its client disconnects.
	Async bool

	// Callback receives the grant of an Async entry, or is nil. Only the webhook sender
	// reads it; no answer and no log shows it.
	Callback *Callback

	// AskWithin is within what time of joining the entry hopes that those who hold finish,
	// if it has to wait; nil asks for nothing. See [Entry.Asks].
	AskWithin *time.Duration

	// Trace is the W3C traceparent of the request that made the entry, or "".
	Trace string

	// Request identifies the parameters that a retry with the same
	// idempotency key must repeat. Empty for a request without such a key.
	Request string

	// Lingers says of an entry that is yet to be written that others are in front
	// of it, so that its write is not urgent. The store does not keep it.
	Lingers bool

	// Opaque says that the entry stands for one that could not be read: only its id, its
	// tenant, its number and one of its locks are known.
	Opaque bool

	// Number is the entry's place in all its queues and its fence, given by the
	// store at the one write; 0 before it.
	Number uint64

	// Handle belongs to the store that wrote the entry (an etcd lease, say) and
	// means nothing to anyone else.
	Handle int64
}

// Worker identifies the holder of entries that are Named. Clients choose holders, but not
// subjects, so none can pass for the worker of another subject.
type Worker struct{ Tenant, Subject, Holder string }

// Worker returns the worker that the entry is a step of.
func (e *Entry) Worker() Worker { return Worker{e.Tenant, e.Subject, e.Holder} }

// MaxTTL is the longest lease that anybody may configure: a dead holder blocks its
// lock for as long. An entry that says more was not written by us.
const MaxTTL = 7 * 24 * time.Hour

// Canonical sorts claims by the bytes of their names, the order in which sets
// are stored and shown.
func Canonical(claims []Claim) { slices.SortFunc(claims, byName) }

// IsCanonical reports whether claims are in the order of [Canonical].
func IsCanonical(claims []Claim) bool { return slices.IsSortedFunc(claims, byName) }

func byName(a, b Claim) int { return cmp.Compare(a.Name, b.Name) }

// Name is the name of the entry's first lock: its only one unless it is a set.
func (e *Entry) Name() string { return e.Claims[0].Name }

// Tries reports whether the entry does not want to queue: it leaves at once if it
// does not hold.
func (e *Entry) Tries() bool { return e.WaitUntil.IsZero() }

// Resumable reports whether a client that lost its connection can come back to
// the entry by an idempotency key.
func (e *Entry) Resumable() bool { return e.Request != "" }

// Reason says why an entry is no longer there.
type Reason string

// The reasons for which entries end.
const (
	Released    Reason = "released"     // by its client
	Expired     Reason = "expired"      // by the store: no client renewed the lease
	Revoked     Reason = "revoked"      // by an operator
	WaitTimeout Reason = "wait_timeout" // it waited for as long as it wanted to
	// it closed a cycle of waits, and no client was connected
	Deadlocked Reason = "deadlock"
	Mismatched Reason = "mode_mismatch" // likewise: the lock was in use in another mode
	Unknown    Reason = "unknown"       // it ended too long ago to tell

	// Withdrawn entries were taken back by the replica that wrote them before
	// any client learned of them. No record of them is kept.
	Withdrawn Reason = "withdrawn"
)

// Note is what an operator states about an end that it caused: its subject, and why. The
// entry's tenant sees both.
type Note struct {
	By     string // the subject of the bearer token
	Reason string // free text
}
