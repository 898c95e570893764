package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Kind is what a view noticed.
type Kind int

// The kinds of findings, with the fields of [Finding] that each has.
const (
	DeadlockFound  Kind = iota // Waits; the entry is the rejected one
	FeedOutOfOrder             // Err; the view skips the entry
)

// Finding is something that one view noticed. Another replica may notice it differently, or not
// at all.
type Finding struct {
	Kind   Kind
	Number uint64    // the store's number that the view had reached
	At     time.Time // when this replica saw it
	Entry  *lock.Entry

	Waits int // in the cycle
	Err   error
}

// Events receives what happens. The view calls its methods while it holds the lock that grants
// need. They must not block, and must not call the view.
type Events interface {
	// Begin marks that the view restarts from a list at number. Of the events up to it, only the
	// added ones are known.
	Begin(number uint64)

	// Add takes an event. Events come in the order of their ids.
	Add(lock.Event)

	// Reached marks that all events up to number were added since Begin.
	Reached(number uint64)

	// Find takes a finding.
	Find(Finding)
}

// Totals count what a view saw.
type Totals struct {
	Expired        uint64 // entries that were not renewed in time
	WaitersExpired uint64 // entries that expired while they waited
}

// writing is the write whose events are being added.
type writing struct {
	number uint64
	events uint32 // events of the write so far
}

// at moves to the write with the number, if it is a new one.
func (w *writing) at(number uint64) {
	if w.number != number {
		*w = writing{number: number}
	}
}
