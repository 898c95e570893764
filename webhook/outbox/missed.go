package outbox

import (
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// lost is what a subscription misses, until it is written that it gets events.missed.
type lost struct {
	events.Missed
	because string
	items   []*item
	first   *item // the earliest of those in the cursor
}

// missedRecord names the record of what a target misses: there is at most one.
const missedRecord = "missed"

// gapAt is a gap of one event.
func gapAt(id lock.EventID) events.Missed { return events.Missed{After: justBefore(id), Before: id} }

// missedID is the id of the message about a gap. If more is missed, it is another message.
func missedID(m events.Missed) string { return m.After.String() + "_" + m.Before.String() }

// gapOf reads what missedID writes.
func gapOf(id string) (m events.Missed, ok bool) {
	after, before, _ := strings.Cut(id, "_")
	var bad, worse error
	m.After, bad = lock.ParseEventID(after)
	m.Before, worse = lock.ParseEventID(before)
	return m, bad == nil && worse == nil && m.After.Compare(m.Before) <= 0
}

// recordOf is the id of the record of a delivery. The record of a gap may be about more by now.
func recordOf(target, delivery string) string {
	if _, ok := gapOf(delivery); ok {
		delivery = missedRecord
	}
	return recordName(target, delivery)
}

// together is the reason of two gaps that become one.
func together(one, other string) string {
	switch {
	case one == "" || one == other:
		return other
	case other == "":
		return one
	}
	return api.MissedForSeveral
}

func earlier(a, b lock.EventID) lock.EventID {
	if a.Compare(b) < 0 {
		return a
	}
	return b
}

// note has a subscription get events.missed for a gap. The item waits until that is written.
func (w *dispatch) note(t *target, m events.Missed, because string, it *item) {
	if t.lost == nil {
		t.lost = &lost{Missed: m}
	}
	l := t.lost
	l.because = together(l.because, because)
	l.After, l.Before = earlier(l.After, m.After), l.Before.Later(m.Before)
	if it.done == nil { // one that holds the cursor is enough
		if l.first != nil && l.first.id.Compare(it.id) <= 0 {
			return
		}
		l.first = it
	}
	it.open++
	l.items = append(l.items, it)
}

// flushMissed writes what subscriptions miss, of each now and then: a full one misses all the time.
func (w *dispatch) flushMissed(now time.Time) {
	for _, t := range w.targets.all {
		if t.lost != nil && now.Sub(t.flushed) >= flushPause {
			t.flushed = now
			w.keepMissed(t)
		}
	}
}

// keepMissed adds what is missed to what is pending of that, for which there is always space.
func (w *dispatch) keepMissed(t *target) {
	l, key := t.lost, w.keyOf(t, missedRecord)
	t.lost = nil
	d := t.pending[key.ID]
	if d == nil {
		d = &delivery{cell: t.cell(key), target: t, kind: api.EventsMissed, made: w.Now()}
		d.begin(time.Now())
		d.missed = l.Missed
		defer w.attempt(d)
	} else {
		w.targets.drop(d)
	}
	d.missed.After, d.missed.Before = earlier(l.After, d.missed.After), l.Before.Later(d.missed.Before)
	d.because, d.id = together(d.because, l.because), missedID(d.missed)
	what := event.Missed(d.missed.After, d.missed.Before, w.Now())
	what.ID, what.Data.Tenant, what.Data.Reason = d.id, t.tenant, d.because
	d.payload = marshal(what)
	d.size = len(d.payload)
	d.items = append(d.items, l.items...)
	w.targets.add(d)
	w.keep(d)
}

// answers has a subscription that takes other deliveries get its events.missed soon: the schedule of
// that may be a day away.
func (w *dispatch) answers(t *target) {
	d := t.pending[recordName(t.id, missedRecord)]
	if d == nil || len(d.attempts) == 0 {
		return // its first attempt is being made
	}
	last := d.attempts[len(d.attempts)-1]
	if w.Now().Sub(last.At) > max(missedPause, time.Duration(last.RetryS)*time.Second) {
		w.hasten(d)
	}
}

// giveUp ends a delivery that failed. Its subscription gets events.missed, after which the record
// goes. The record of a callback says that it failed.
func (w *dispatch) giveUp(d *delivery) {
	id := d.event()
	if id == (lock.EventID{}) {
		w.end(d)
		return
	}
	d.over, d.untold = true, true
	w.forgetDue(d)
	w.targets.drop(d)
	w.note(d.target, gapAt(id), api.MissedUndelivered, &item{read: time.Now(), done: func() {
		d.untold = false
		d.settle()
		w.erase(d)
	}})
}

// missed handles a gap of the events: one tenant may have had so many that those of all are not kept
// for long. Each subscription gets what its tenant's own history has, and events.missed for the rest.
// Entries that hold are called back: their grants may be in the gap.
func (w *owner) missed(m *events.Missed) {
	if m.Backwards() { // the store was restored: what is in memory is of another past
		w.Logger.Warn("the store lost its past; webhooks go on from what it has", "shard", w.name)
		w.lostShard()
		return
	}
	it := &item{id: m.After, read: time.Now()}
	if it.id == (lock.EventID{}) {
		it.id = m.Before
	}
	for _, ts := range w.targets.byTenant {
		for _, t := range ts {
			if t.gets(m.Before) {
				w.offerPast(t, *m, it)
			}
		}
	}
	w.callHeld(m.Before, it)
	if it.open > 0 {
		w.cursor.items = append(w.cursor.items, it)
	}
	w.cursor.reached(m.Before)
	w.startLate(w.cursor.last)
	w.cursor.passed = true
}
