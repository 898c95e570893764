package webhook

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// MaxPayload is how long a payload may be, in bytes.
const MaxPayload = 20_000

// Message is what a receiver gets.
type Message struct {
	ID      string // the same with every attempt, a [ValidID]
	Payload []byte // JSON, at most [MaxPayload] bytes; not changed while it is sent

	// NotAfter is when it is of no use any more: it is not sent from then on. The
	// zero time is never. One of time.Now keeps its meaning when the wall clock jumps, if
	// nothing took its monotonic reading away.
	NotAfter time.Time
}

// Check returns why the message cannot be sent, a [lock.InvalidRequest].
func (m *Message) Check() error {
	switch {
	case !ValidID(m.ID):
		return lock.Invalid("id", "is not valid")
	case len(m.Payload) > MaxPayload:
		return lock.Invalid(
			"payload", "has %d bytes, and at most %d are sent", len(m.Payload), MaxPayload,
		)
	}
	return nil
}

// Expired reports whether it is too late for the message at an instant.
func (m *Message) Expired(now time.Time) bool {
	return !m.NotAfter.IsZero() && !now.Before(m.NotAfter)
}

// Target is where a message goes, and how it is signed.
type Target struct {
	URL     string
	Secrets []Secret // one to [MaxSecrets]; each signs
}

// Outcome is what came of an attempt.
type Outcome string

// The outcomes.
const (
	Delivered   Outcome = "delivered"   // 2xx
	Failed      Outcome = "failed"      // another status, or no answer
	Throttled   Outcome = "throttled"   // 429, 502, 503, 504: too much for now
	Gone        Outcome = "gone"        // 410: the receiver wants nothing any more
	Rejected    Outcome = "rejected"    // not sent, because of what it is or where it would go
	Expired     Outcome = "expired"     // not sent, because NotAfter had come
	Interrupted Outcome = "interrupted" // given up by the sender, when its context ended
)

// Result is one attempt, for its record.
type Result struct {
	Outcome Outcome
	Status  int // of the answer; 0 if there was none

	// RetryAfter is for how long the receiver asks to be left alone, 24 hours at most.
	RetryAfter time.Duration

	// Err says what went wrong, in words that the tenant may read: nothing of other
	// addresses than those of the URL, of secrets, or of what the receiver wrote.
	Err string

	// Took is how long the attempt took, with what was read of the answer's body.
	Took time.Duration

	// DateSkew is by how much the receiver's clock is ahead of ours, as its Date header
	// says; 0 for less than a minute, or if there was none. Receivers refuse signatures
	// that are five minutes off.
	DateSkew time.Duration

	// Cause is for the log, never for the tenant.
	Cause error
}
