package outbox

import (
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// gapAt is a gap of one event.
func gapAt(id lock.EventID) events.Missed {
	return events.Missed{After: justBefore(id), Before: id}
}

// missedID is the id of the message about a gap. If more is missed, it is another message.
func missedID(m events.Missed) string { return m.After.String() + "_" + m.Before.String() }

// gapOf reads what missedID writes.
func gapOf(id string) (m events.Missed, ok bool) {
	after, before, _ := strings.Cut(id, "_")
	var bad, worse error
	m.After, bad = lock.ParseEventID(after)
	m.Before, worse = lock.ParseEventID(before)
	if bad != nil || worse != nil || m.Backwards() {
		return events.Missed{}, false
	}
	return m, true
}

func earlier(a, b lock.EventID) lock.EventID {
	if a.Compare(b) < 0 {
		return a
	}
	return b
}

// note adds a gap to what a subscription misses, for which there is always space. The item waits
// until that is written.
func (w *dispatch) note(t *target, m events.Missed, because string, it *item) {
	key := w.keyOf(t, missedRecord)
	d := t.pending[key.ID]
	if d == nil {
		d = &delivery{cell: cell{key: key}, target: t, over: true}
		w.targets.add(d)
	}
	if d.over { // of an earlier one the record may still be there
		d.form = form{Kind: api.EventsMissed, Because: because, Made: w.Now().UnixMilli()}
		d.over, d.ended, d.held, d.gap = false, false, true, m
		d.begin(time.Now())
	}
	if d.Because != because {
		d.Because = api.MissedForSeveral
	}
	d.gap.After, d.gap.Before = earlier(m.After, d.gap.After), m.Before.Later(d.gap.Before)
	d.stale = true
	it.open++
	d.items = append(d.items, it)
}

// flushMissed writes what subscriptions miss, of each now and then: a full one misses all the time.
func (w *dispatch) flushMissed(now time.Time) {
	for _, t := range w.targets.all {
		d := t.pending[recordOf(t.id, missedRecord)]
		if d == nil || !d.stale || d.over || d.busy || now.Sub(t.flushed) < flushPause {
			continue
		}
		t.flushed = now
		if w.keep(d); d.held {
			d.held = false
			w.attempt(d)
		}
	}
}

// renew has a message say all that is missed by now.
func (w *dispatch) renew(d *delivery) {
	d.ID = missedID(d.gap)
	what := event.Missed(d.gap.After, d.gap.Before, w.Now())
	what.ID, what.Data.Tenant, what.Data.Reason = d.ID, d.target.tenant, d.Because
	d.Payload = marshal(what)
}

// answers has a subscription that takes other deliveries get its events.missed soon: the schedule
// of that may be a day away.
func (w *dispatch) answers(t *target) {
	d := t.pending[recordOf(t.id, missedRecord)]
	if d == nil || len(d.Attempts) == 0 {
		return // its first attempt is being made
	}
	last := d.Attempts[len(d.Attempts)-1]
	if time.Since(d.last) > max(missedPause, time.Duration(last.RetryS)*time.Second) {
		w.hasten(d)
	}
}

// giveUp ends a delivery that failed. Its record goes once it is written that its subscription gets
// events.missed.
func (w *dispatch) giveUp(d *delivery, gap events.Missed, because string) {
	d.over = true
	w.forgetDue(d)
	it := &item{open: 1, done: func() {
		if d.over {
			w.finish(d)
		}
	}}
	w.note(d.target, gap, because, it)
	it.settle()
}
