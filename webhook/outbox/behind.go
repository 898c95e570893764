package outbox

import (
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
)

// behind are the callbacks of a tenant for which there was no space when their events came. Its
// position is in the target's state, so the shard's cursor goes on, and others are not held up. The
// memory has what a callback can be made from again: the entry that holds, or the tenant's history.
type behind struct {
	window                 // what was not taken up, or is neither made nor written since
	waiting []*waitingCall // of that what is still to take up, in order
	waits   map[entry]bool // their entries
	unsaved []*item        // events that wait until the state in the store has the position
	stored  lock.EventID   // the position in the store; zero is none
	sent    lock.EventID   // the position of the newest write, which may be under way
	skipped int            // callbacks that were never sent, since that was logged
	logged  time.Time
}

// entry names an entry of a tenant. A key that is used again gives its id to another one.
type entry struct {
	id     lock.ID
	number uint64
}

// waitingCall is a callback that is still to take up.
type waitingCall struct {
	item
	event lock.Event // without its entry
	entry entry
	lock  string
}

// postpone has a callback wait, unless there is space for it or too many wait already.
func (w *owner) postpone(t *target, e *lock.Event, it *item) bool {
	free := len(t.waiting) == 0 && w.out.targets.fits(t, webhook.MaxPayload)
	if it.again || t.has(e) || free || !w.wait(t, e, it.id) {
		return false
	}
	if !t.covers(it.id) {
		it.open++
		t.unsaved, t.dirty = append(t.unsaved, it), true
	}
	return true
}

// covers reports whether the next owner reads an event by the position that is in the store, also
// if a write of the state is under way.
func (b *behind) covers(id lock.EventID) bool {
	var none lock.EventID
	return b.stored != none && b.stored.Compare(id) < 0 && b.sent != none && b.sent.Compare(id) < 0
}

// position parses a position; zero is none.
func position(text string) lock.EventID {
	at, err := lock.ParseEventID(text)
	if err != nil {
		return lock.EventID{}
	}
	return at
}

// has reports whether the callback of an event is pending.
func (t *target) has(e *lock.Event) bool { return t.pending[recordOf(t.id, callID(e))] != nil }

// wait adds a callback to those that wait, unless there are too many. at is its position.
func (w *owner) wait(t *target, e *lock.Event, at lock.EventID) bool {
	of := entry{e.Entry.ID, e.Entry.Number}
	if t.waits[of] {
		return true
	}
	if len(t.waiting) >= maxWaiting || w.out.targets.waiting >= maxWaitingInAll {
		return false
	}
	c := &waitingCall{item: item{id: at, open: 1}, event: *e, entry: of, lock: e.Entry.Name()}
	c.event.Entry, c.event.Note = nil, nil
	t.waits[c.entry] = true
	t.waiting = append(t.waiting, c)
	t.window.wait(&c.item)
	w.out.targets.waiting++
	if t.Behind == "" {
		t.Behind, t.dirty = justBefore(at).String(), true
	}
	return true
}

// catchUpCalls takes up the callbacks for which there is space by now. A replica that may be cut
// off does not know which entries hold.
func (w *owner) catchUpCalls(now time.Time) {
	for _, t := range w.out.targets.all {
		for len(t.waiting) > 0 && w.out.lease.holds() && w.out.targets.fits(t, webhook.MaxPayload) {
			c := t.waiting[0]
			t.waiting[0] = nil
			t.waiting = t.waiting[1:]
			delete(t.waits, c.entry)
			w.out.targets.waiting--
			c.read = now
			w.takeUp(t, c)
		}
		w.out.logSkipped(t, now)
	}
}

func (w *owner) takeUp(t *target, c *waitingCall) {
	if e := w.eventOf(t, c); e != nil {
		w.call(t, e, &c.item)
	} else {
		c.event.Entry = &lock.Entry{
			ID: c.entry.id, Number: c.entry.number, Claims: []lock.Claim{{Name: c.lock}},
		}
		d := w.out.newDelivery(t, callID(&c.event), &c.event)
		d.Made, d.progress.State = w.out.Now().UnixMilli(), webhook.StateExpired
		t.remember(d)
		w.out.skip(t, webhook.Expired)
	}
	c.settle()
}

// eventOf returns the event of a waiting callback: of a grant if the entry holds, of an end if the
// tenant's history still has it. Otherwise it returns nil.
func (w *owner) eventOf(t *target, c *waitingCall) (found *lock.Event) {
	if c.event.Held {
		e := w.out.Holders.HeldCallback(t.tenant, c.entry.id)
		if e == nil || e.Number != c.entry.number {
			return nil
		}
		granted := c.event
		granted.Entry = e
		return &granted
	}
	each := func(_ *events.Missed, e *lock.Event) bool {
		if e != nil && e.ID == c.event.ID {
			found = e
		}
		return false
	}
	err := w.out.history.past(w.out.ctx, lock.OwnTenant, t.tenant, justBefore(c.event.ID), each)
	if err != nil {
		w.out.Logger.Debug("a tenant's events could not be read", "tenant", t.tenant, "error", err)
	}
	return found
}

// advance moves the position before the first callback that is neither made nor written.
func (t *target) advance() {
	at := ""
	if it := t.oldest(); it != nil {
		at = justBefore(it.id).String()
	}
	if at != t.Behind {
		t.Behind, t.dirty = at, true
	}
}

// resumeCalls has the callbacks wait that the owner before had not taken up. Some come twice.
func (w *owner) resumeCalls(t *target) {
	after, bad := lock.ParseEventID(t.Behind)
	each := func(missed *events.Missed, e *lock.Event) bool {
		switch {
		case missed != nil && missed.Backwards():
			return false
		case missed != nil:
			w.waitHeld(t, missed.Before, missed.After)
		case e.ID.Compare(w.out.cursor.last) > 0:
			return false // the stream has it
		case e.Entry.Callback != nil && concernsCaller(e):
			w.resume(t, e, e.ID)
		}
		return true
	}
	if bad != nil || w.out.history.past(w.out.ctx, lock.OwnTenant, t.tenant, after, each) != nil {
		w.waitHeld(t, w.out.cursor.last, after)
	}
}

// waitHeld has a tenant's entries that hold and were written before an event wait for a callback.
func (w *owner) waitHeld(t *target, before, at lock.EventID) {
	for _, e := range w.out.Holders.HeldCallbacks() {
		if e.Tenant == t.tenant && lock.Before(e.Number).Compare(before) < 0 {
			w.resume(t, grantOf(e), at)
		}
	}
}

// resume has a callback wait that is not pending. Over the bound its record says that it failed,
// unless there is space for it.
func (w *owner) resume(t *target, e *lock.Event, at lock.EventID) {
	if !t.has(e) && !w.wait(t, e, at) {
		it := &item{id: at, read: time.Now()}
		w.call(t, e, it)
		t.window.wait(it)
	}
}

// keepLateCalls writes the callbacks that were taken up and whose first attempt takes long.
func (w *owner) keepLateCalls(now time.Time) {
	for _, t := range w.out.targets.all {
		for _, it := range t.items {
			if it.read.IsZero() || now.Sub(it.read) < keepAfter {
				break
			}
			w.out.keepAll(it)
		}
	}
}

// hasSeen reports whether this replica has seen what the owner before has: the callbacks that wait
// are derived from that. It waits for it no longer than silentTime, because a store that lost its
// past may never get there.
func (w *owner) hasSeen() bool {
	waits := func(t *target) bool { return t.Behind != "" }
	targets := slices.Collect(maps.Values(w.out.targets.all))
	if !slices.ContainsFunc(targets, waits) || time.Since(w.out.began) >= silentTime {
		return true
	}
	now, err := w.out.Locks.Events(w.out.ctx, service.EventsRequest{Of: lock.OwnTenant})
	if err != nil {
		return false
	}
	defer now.Close()
	return now.At().Compare(w.out.cursor.at) >= 0
}

// skip counts a callback that is never sent.
func (w *dispatch) skip(t *target, as webhook.Outcome) {
	t.skipped++
	w.Metrics.WebhookAttempted(w.ctx, string(as), 0)
}

func (w *dispatch) logSkipped(t *target, now time.Time) {
	if t.skipped == 0 || now.Sub(t.logged) < skippedPause {
		return
	}
	w.Logger.Warn("callbacks were not sent: their entries have ended, or too many wait",
		"tenant", t.tenant, "callbacks", t.skipped, "waiting", len(t.waiting))
	t.skipped, t.logged = 0, now
}
