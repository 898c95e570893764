package lock

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of closures.
const (
	// MaxClosing is the longest closure.
	MaxClosing = 6 * 24 * time.Hour

	// MaxClosures bounds a tenant's closures at one time.
	MaxClosures = 100
)

// Closure keeps new entries from joining some of a tenant's locks until an instant. It does not
// affect queued entries: which of them hold is a function of the queue alone.
type Closure struct {
	ID          ID
	Tenant      string
	Locks       Pattern
	Since       time.Time
	Until       time.Time
	Reason      string // the operator's, shown to clients
	Description string // more about it, for operators
	By          string // the subject of the operator's bearer token

	// Number is that of a write from which on no entry joins: a view up to it shows all entries that
	// joined before.
	Number uint64
}

// Closes reports whether the closure is in force at an instant and covers one of the locks.
func (c *Closure) Closes(tenant string, claims []Claim, at time.Time) bool {
	return c.Tenant == tenant && at.Before(c.Until) &&
		slices.ContainsFunc(claims, func(claim Claim) bool { return c.Locks.Match(claim.Name) })
}

// Is reports whether the other is this closure.
func (c *Closure) Is(other *Closure) bool { return c.ID == other.ID }

// Compare orders closures by the times at which they began, then by id.
func (c *Closure) Compare(other *Closure) int {
	return cmp.Or(c.Since.Compare(other.Since), cmp.Compare(c.ID, other.ID))
}

// maxReopens bounds Retry-After of a closed lock, because an operator may open it early.
const maxReopens = 30 * time.Second

// ErrClosed returns a [Closed] error with the end and the reason of the closure.
func ErrClosed(c *Closure, now time.Time) *Error {
	return &Error{
		Code: Closed,
		Detail: "an operator has closed the lock: no new entry joins its queue; " +
			"retry after the time in until",
		Closure: c, RetryAfter: min(max(c.Until.Sub(now), time.Second), maxReopens),
	}
}
