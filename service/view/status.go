package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// State is an entry's state in the view.
type State int

// The states of an entry in the view.
const (
	Unseen  State = iota // not in the view, which may be older than the entry
	Waiting              // queued
	Held                 // a holder
	Gone                 // it existed, and has ended
)

// Status is what the view knows about an entry.
type Status struct {
	State  State
	Entry  *lock.Entry   // waiting or held
	Waited time.Duration // held: time from the request to the grant, 0 if it held at once
	Queued bool          // held: it waited, or may have while the feed was down
	Doubt  bool          // held: granted while the server refuses to grant
	Reason lock.Reason   // gone

	// waiting: what a choosing entry may keep, nil if it has to wait; see [lock.Member.Choice]
	Choice  []lock.Claim
	Soon    bool  // waiting: the view has announced its grant
	Refused error // waiting: why it cannot stay in the queue, if so; gone: why it could not
}

// Status returns the state of the entry with the id and number; number 0 is unknown. An
// idempotency key can have an earlier entry of the same id, whose end the view has not seen yet.
func (v *View) Status(id lock.ID, number uint64) Status {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch e, holds := v.Queues.table.Entry(id); {
	case e == nil, number != 0 && e.Number > number: // it ended, or the feed will bring it
	case e.Number < number:
		return Status{}
	case holds:
		_, doubt := v.Queues.doubtful[id]
		waited, queued := v.Queues.waited[id]
		return Status{State: Held, Entry: e, Waited: waited, Queued: queued, Doubt: doubt}
	default:
		st := Status{
			State: Waiting, Entry: e, Soon: v.Waits.watched[id].announced, Refused: v.Rejections.refused(id),
		}
		if e.Choosing() {
			st.Choice = v.choiceOf(id)
		}
		return st
	}
	if number > v.Progress.number {
		return Status{} // the feed may bring it, even if an earlier entry with the id ended
	}
	if why := v.Reasons.ended.reason(id, time.Now()); why != "" {
		return Status{State: Gone, Reason: why, Refused: v.Waits.refusedWith(id, number)}
	}
	if number != 0 {
		return Status{State: Gone, Reason: lock.Unknown, Refused: v.Waits.refusedWith(id, number)}
	}
	return Status{}
}

// choiceOf returns what a choosing entry may keep, or nil.
func (v *View) choiceOf(id lock.ID) []lock.Claim {
	choice, _ := v.Queues.table.Member(id).Choice()
	return choice
}

// Totals returns what the view has counted so far.
func (v *View) Totals() Totals {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.totals
}

// Gone reports whether an entry of that number is known to have ended: the view is complete up to
// the number, and does not have the entry. A later entry may have its id.
func (v *View) Gone(id lock.ID, number uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, _ := v.Queues.table.Entry(id)
	return v.Progress.current && v.Progress.number >= number && (e == nil || e.Number != number)
}
