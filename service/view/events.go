package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
)

// Kind is what happened.
type Kind int

// The kinds of events, with the fields of [Event] that each has.
const (
	EntryEnded       Kind = iota // Reason, Held, Lasted
	DeadlockFound                // Waits; the entry is the one that is refused
	OrdersContradict             // Ring, Silenced; the entry is the one that brought it to light
	FeedOutOfOrder               // Err; the entry is passed over
)

// Event is something that a view saw happen.
type Event struct {
	Kind   Kind
	Number uint64    // the store's, up to which the view was told with it
	At     time.Time // when this replica saw it
	Entry  *lock.Entry

	Reason   lock.Reason
	Held     bool
	Lasted   time.Duration // of the hold
	Waits    int           // in the cycle
	Ring     *order.Contradiction
	Silenced uint64 // how many rings of the tenant were not told since the last line
	Err      error
}

// Events takes what happens. Add is called while the view holds its lock, for which
// grants wait: it must not block, nor call the view.
type Events interface{ Add(Event) }

// Totals count what a view saw happen.
type Totals struct {
	Expired      uint64 // entries that nobody renewed in time
	Contradicted uint64 // rings of orders of locks
}

// happened hands an event on, with what all of them have.
func (v *View) happened(what Event, now time.Time) {
	what.Number, what.At = v.told, now
	v.Events.Add(what)
}
