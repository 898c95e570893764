package outbox

import (
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
)

// lost is what a target cannot be told: it is told so instead.
type lost struct {
	events.Missed
	because string  // one of the reasons for which it is not told
	items   []*item // of the window, until it is kept that the target is told so
	first   *item   // of those that do nothing then: it has the cursor wait for all that come after it
}

// together is the reason for which two parts of what is missed are not told.
func together(one, other string) string {
	switch {
	case one == "" || one == other:
		return other
	case other == "":
		return one
	}
	return api.MissedForSeveral
}

func (l *lost) settle() {
	for _, it := range l.items {
		it.settle()
	}
	l.items = nil
}

// missedRecord is the name of the record of what a target misses: there is one at most.
const missedRecord = "missed"

// missed takes note that the feed did not tell some events. Where one tenant has had so many that those of all are
// not kept for long, each tenant's own history has still what happened in it.
func (w *owner) missed(m *events.Missed) {
	if m.Backwards() {
		w.lostPast()
		return
	}
	it := &item{id: m.After, read: time.Now()} // who takes over meanwhile is told of the gap too
	if it.id == (lock.EventID{}) {
		it.id = m.Before
	}
	for _, ts := range w.targets.byTenant {
		for _, t := range ts {
			if m.Before.Number > t.From && (t.sends() || t.pausedAfter(m.After)) {
				w.lacks(t, *m, it)
			}
		}
	}
	w.callBackHeld(m.Before, it, anyEntry)
	for _, p := range w.parking.parked {
		p.lacks = *m
	}
	if it.open > 0 {
		w.window.add(it)
	}
	w.window.reached(m.Before)
	w.startLate(w.window.last)
	w.cursor.passed = true
}

// lacks gives a target what it was not told with the others, as far as that is known. To one that is given nothing at
// the moment that would come before what it is to be given first, and to one whose tenant has had more than its share
// of what it takes to find out what it is to be given, that would take still more.
func (w *owner) lacks(t *target, m events.Missed, it *item) {
	if w.parking.waitsFor(t, "") || !w.match.may(t.tenant, it.read) {
		w.note(t, m, api.MissedUnknown, it)
		return
	}
	w.offerPast(t, m, nil, it)
}

// lack takes note that there is no room for a delivery. A caller without a receiver that is told what is
// missing sees it in the list, and so does who asks for a test.
func (w *owner) lack(d *delivery, it *item) {
	switch {
	case d.grant != nil, d.event() == lock.EventID{}:
		d.progress.State = webhook.StateFailed
		d.target.remember(d)
		w.warnOfRoom(d)
	default:
		w.note(d.target, gapAt(d.event()), api.MissedForRoom, it)
	}
}

// warnOfRoom says in the log that a callback or a test is not sent, of a target once in a while: whoever asks for more all the
// time must not fill it.
func (w *owner) warnOfRoom(d *delivery) {
	t := d.target
	if !t.warned.IsZero() && time.Since(t.warned) < warnPause {
		t.silenced++
		return
	}
	w.Logger.Warn("a callback or a test is not sent: the tenant has too many deliveries", "tenant", t.tenant, "id", d.id, "silenced", t.silenced)
	t.warned, t.silenced = time.Now(), 0
}

// gapAt is a gap of one event.
func gapAt(id lock.EventID) events.Missed { return events.Missed{After: justBefore(id), Before: id} }

// note has a target told that something is missed, and why, together with what it missed just
// before.
func (w *owner) note(t *target, m events.Missed, because string, it *item) {
	if t.lost == nil {
		t.lost = &lost{Missed: m}
	}
	t.lost.because = together(t.lost.because, because)
	t.lost.After = earlier(t.lost.After, m.After)
	t.lost.Before = t.lost.Before.Later(m.Before)
	t.lost.holds(it)
}

// holds has an item wait until it is kept that its target is told so. One of many that a target misses is enough for the
// cursor: the window would be full of them.
func (l *lost) holds(it *item) {
	if it.done == nil {
		if l.first != nil && l.first.id.Compare(it.id) <= 0 {
			return
		}
		l.first = it
	}
	it.open++
	l.items = append(l.items, it)
}

// flushMissed has targets told that they missed something, for which there is always room. As
// long as one is being told, or is to be told again, what it misses besides is added to what
// is kept, so that the window never waits for a receiver: that is one more write, so it is not done all the time.
// Where many miss something, as all webhooks of a tenant do at the same moment, a part of them is told at each beat, who
// waits longest first: all of it together would be a burst of writes.
func (w *owner) flushMissed() {
	now := time.Now()
	var due []*target
	for _, t := range w.targets.all {
		if t.lost != nil && now.Sub(t.flushed) >= flushPause {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *target) int { return a.flushed.Compare(b.flushed) })
	const parts = int(flushPause / tick)
	for _, t := range due[:(len(due)+parts-1)/parts] {
		t.flushed = now
		w.tellMissed(t)
	}
}

func (w *owner) tellMissed(t *target) {
	name := recordName(t.id, missedRecord)
	d := t.pending[name]
	l := t.lost
	t.lost = nil
	fresh := d == nil
	if fresh {
		d = &delivery{target: t, record: name, kind: api.EventsMissed, made: w.Now()}
		d.progress = beginOf(d, time.Now())
	} else {
		l.After, l.Before = earlier(l.After, d.missed.After), l.Before.Later(d.missed.Before)
		l.because = together(d.because, l.because)
		w.targets.drop(d)
	}
	d.missed, d.because, d.id = l.Missed, l.because, missedID(l.Missed)
	d.payload = marshal(missedEvent(t.tenant, l, w.Now()))
	d.size = len(d.payload)
	d.items = append(d.items, l.items...)
	w.add(d)
	w.keep(d)
	if fresh {
		w.attempt(d)
	} else {
		t.remember(d)
	}
}

// answers has a target that takes other deliveries told soon what it misses: more was added to that
// since its last attempt, perhaps, and it keeps its place in the schedule, which can be a day away.
func (w *owner) answers(t *target) {
	d := t.pending[recordName(t.id, missedRecord)]
	if d == nil || len(d.attempts) == 0 {
		return // its first attempt is being made
	}
	last := d.attempts[len(d.attempts)-1]
	if w.Now().Sub(last.At) > max(missedPause, time.Duration(last.RetryS)*time.Second) {
		w.hasten(d)
	}
}

func (d *delivery) tellsMissed() bool { return d.record == recordName(d.target.id, missedRecord) }

// missedID is the id of the message that tells of a gap. It names both ends: more that is missed
// is another message, which nobody may take for one that he has seen, nor for an event.
func missedID(m events.Missed) string { return m.After.String() + "_" + m.Before.String() }

// gapOf reads what missedID writes, and nothing else.
func gapOf(id string) (m events.Missed, ok bool) {
	after, before, _ := strings.Cut(id, "_")
	var bad, worse error
	m.After, bad = lock.ParseEventID(after)
	m.Before, worse = lock.ParseEventID(before)
	return m, bad == nil && worse == nil && m.After.Compare(m.Before) <= 0
}

// recordOf is the id of the record of a target's delivery with an id that people know it by. Of
// what is missed there is one, which may tell of more by now.
func recordOf(target, delivery string) string {
	if _, ok := gapOf(delivery); ok {
		return recordName(target, missedRecord)
	}
	return recordName(target, delivery)
}

func missedEvent(tenant string, l *lost, now time.Time) *api.Event {
	e := event.Missed(l.After, l.Before, now)
	e.ID, e.Data.Tenant, e.Data.Reason = missedID(l.Missed), tenant, l.because
	return e
}

func earlier(a, b lock.EventID) lock.EventID {
	if a.Compare(b) < 0 {
		return a
	}
	return b
}
