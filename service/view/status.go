package view

import (
	"cmp"
	"maps"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// State is where an entry stands.
type State int

// The states of an entry in the view.
const (
	Unseen  State = iota // not in the view, which may be older than the entry
	Waiting              // queued
	Held                 // a holder
	Gone                 // it was there, and is no more
)

// Status is what the view knows of an entry.
type Status struct {
	State  State
	Entry  *lock.Entry   // waiting or held
	Waited time.Duration // held: between the request and the grant, 0 if it held at once
	Queued bool          // held: it was seen to wait, or may have done so while the feed was interrupted
	Doubt  bool          // held: it came to hold while nothing might be granted
	Reason lock.Reason   // gone

	Soon    bool  // waiting: its turn was announced
	Refused error // waiting: why it cannot stay in the queue, if it cannot; gone: why it could not
}

// Status looks up the entry with the id, whose number is known to be number, or
// 0 if it is not known to exist. An idempotency key can have an earlier entry of the
// same id, whose end the view has not seen yet.
func (v *View) Status(id lock.ID, number uint64) Status {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch e, holds := v.table.Entry(id); {
	case e == nil, number != 0 && e.Number > number: // it ended, or is on its way
	case e.Number < number:
		return Status{}
	case holds:
		_, doubt := v.doubtful[id]
		waited, queued := v.waited[id]
		return Status{State: Held, Entry: e, Waited: waited, Queued: queued, Doubt: doubt}
	default:
		return Status{State: Waiting, Entry: e, Soon: v.announced[id], Refused: v.refused(id)}
	}
	if number > v.number {
		return Status{} // it may be on its way, even if an earlier one with the id ended
	}
	if why := v.ended.reason(id, time.Now()); why != "" {
		return Status{State: Gone, Reason: why, Refused: v.rejections.refusedWith(id, number)}
	}
	if number != 0 {
		return Status{State: Gone, Reason: lock.Unknown, Refused: v.rejections.refusedWith(id, number)}
	}
	return Status{}
}

// EndOf returns why an entry of the tenant ended, [lock.Unknown] if that is not known.
func (v *View) EndOf(tenant string, id lock.ID) lock.Reason {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return cmp.Or(v.ended.reasonOf(tenant, id, time.Now()), lock.Unknown)
}

// RevokeReason returns what the operator said who revoked an entry, "" if that is not known.
func (v *View) RevokeReason(id lock.ID) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.ended.revoked[keyOf(id)]
}

// Reached reports whether everything up to number is in the view.
func (v *View) Reached(number uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.number >= number
}

// Missing returns an error if this replica never had a view of the store.
func (v *View) Missing() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.begun {
		return nil
	}
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: "this replica has not seen the store's locks yet",
		RetryAfter: time.Second,
	}
}

// LostFor returns how long the feed has been interrupted, or not come up yet, 0
// if it is there.
func (v *View) LostFor() time.Duration {
	at, lost := v.LostSince()
	if !lost {
		return 0
	}
	return max(time.Since(at), 1)
}

// LostSince returns since when the feed is interrupted, or has not come up, and whether it is so.
func (v *View) LostSince() (at time.Time, lost bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.lostAt, !v.current
}

// LateFor returns for how long the view has not had everything: since the feed was interrupted, or we began to
// wait for it, until it is back and has told what happened meanwhile, however often it is interrupted before that. It
// is 0 if that is so.
func (v *View) LateFor() time.Duration {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.current && v.number >= v.goal {
		return 0
	}
	return max(time.Since(v.lateAt), 1)
}

// Count returns how many entries hold and wait, by the mode of their first claim, and for
// how long the oldest of those that wait has waited. The map is nil until there was a
// first Reset.
func (v *View) Count() (byMode map[lock.Mode]lock.Counts, oldest time.Duration) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.begun {
		return nil, 0
	}
	if first := v.table.Longest(); first != nil {
		oldest = v.WaitedFor(first)
	}
	return maps.Clone(v.table.Counts()), oldest
}

// HeldCallbacks returns the entries that hold and name a callback. It looks at all entries.
func (v *View) HeldCallbacks() (held []*lock.Entry) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for e, holds := range v.table.Entries() {
		if holds && e.Callback != nil {
			held = append(held, e)
		}
	}
	return held
}

// HeldCallback returns the tenant's entry with the id if it holds and names a callback, and nil otherwise.
func (v *View) HeldCallback(tenant string, id lock.ID) *lock.Entry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, holds := v.table.Entry(id)
	if !holds || e.Tenant != tenant || e.Callback == nil {
		return nil
	}
	return e
}

// HeldSince returns since when the entry holds, as this replica saw it, and whether it does.
func (v *View) HeldSince(id lock.ID) (since time.Time, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	since, ok = v.since[id]
	return since, ok
}

// Position returns the entry's place among those that wait.
func (v *View) Position(id lock.ID) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.Position(id)
}

// Number returns the store's number up to which everything is in the view, 0 before the
// first list.
func (v *View) Number() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.number
}

// Totals returns what the view has counted so far.
func (v *View) Totals() Totals {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.totals
}

// Gone reports whether an entry of that number is known to have ended: everything up to its number is in
// the view, and it is not. A later one may have its id.
func (v *View) Gone(id lock.ID, number uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e, _ := v.table.Entry(id)
	return v.current && v.number >= number && (e == nil || e.Number != number)
}
