package lock

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of closures.
const (
	// MaxClosing is the longest time for which locks are closed at once.
	MaxClosing = 6 * 24 * time.Hour

	// MaxClosures is how many closures of one tenant may stand at a time.
	MaxClosures = 100
)

// Closure says that no new entry joins some locks of a tenant until an instant. It says
// nothing of entries in the queue: which of them hold is a function of the queue alone.
type Closure struct {
	ID          ID
	Tenant      string
	Locks       Pattern
	Since       time.Time
	Until       time.Time
	Reason      string // the operator's, shown to clients
	Description string // more about it, for operators
	By          string // the subject of the operator's bearer token
	Number      uint64 // the version of its record
}

// Closes reports whether the closure stands at an instant and is about one of the locks.
func (c *Closure) Closes(tenant string, claims []Claim, at time.Time) bool {
	return c.Tenant == tenant && at.Before(c.Until) &&
		slices.ContainsFunc(claims, func(claim Claim) bool { return c.Locks.Match(claim.Name) })
}

// Compare orders closures by their writes, and those that one write made by id.
func (c *Closure) Compare(other *Closure) int {
	return cmp.Or(cmp.Compare(c.Number, other.Number), cmp.Compare(c.ID, other.ID))
}

// maxReopens is after how long a client retries a lock that is closed for longer: an operator
// may open it before.
const maxReopens = 30 * time.Second

// ErrClosed returns a [Closed] error that says until when and why.
func ErrClosed(c *Closure, now time.Time) *Error {
	return &Error{
		Code:    Closed,
		Detail:  "an operator has closed the lock: no new entry joins its queue before the time in until",
		Closure: c, RetryAfter: min(max(c.Until.Sub(now), time.Second), maxReopens),
	}
}
