package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
)

// Kind is what a view noticed.
type Kind int

// The kinds of findings, with the fields of [Finding] that each has.
const (
	DeadlockFound    Kind = iota // Waits; the entry is the one that is refused
	OrdersContradict             // Ring, Silenced; the entry is the one that brought it to light
	FeedOutOfOrder               // Err; the entry is passed over
)

// Finding is something that a view noticed, and that another replica may notice otherwise,
// or not at all.
type Finding struct {
	Kind   Kind
	Number uint64    // the store's, up to which the view has reached with it
	At     time.Time // when this replica saw it
	Entry  *lock.Entry

	Waits         int // in the cycle
	Contradiction *order.Contradiction
	Silenced      uint64 // how many rings of the tenant were not told since the last line
	Quiet         bool   // no log line: the last one of the tenant is recent
	Err           error
}

// Events takes what happens. Its methods are called while the view holds its lock, for
// which grants wait: they must not block, nor call the view.
type Events interface {
	// Begin says that the view starts over with a list at number: of what happened up to
	// it only what was added is known.
	Begin(number uint64)

	// Add takes an event. Events come in the order of their ids.
	Add(lock.Event)

	// Reached says that all events up to number were added since Begin.
	Reached(number uint64)

	// Find takes what the view noticed beside.
	Find(Finding)
}

// Totals count what a view saw happen.
type Totals struct {
	Expired      uint64 // entries that were not renewed in time
	Contradicted uint64 // rings of orders of locks

	WaitersExpired uint64 // entries that expired while they waited
}

// writing is the write whose events are added.
type writing struct {
	number uint64
	events uint32 // of it, so far
}

// at goes on to the changes of a write, if it is another than that before.
func (w *writing) at(number uint64) {
	if w.number != number {
		*w = writing{number: number}
	}
}
