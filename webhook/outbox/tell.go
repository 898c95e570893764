package outbox

import (
	"bytes"
	"slices"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
)

// tell has everybody told of an event whom it concerns. That is nobody most of the time.
func (w *owner) tell(e *lock.Event) {
	w.startLate(e.ID)
	if len(w.targets.byTenant[e.Entry.Tenant]) > 0 || e.Entry.Callback != nil {
		w.tellAll(e)
	}
	w.window.reached(e.ID)
	w.cursor.passes(e.At)
}

func (w *owner) tellAll(e *lock.Event) {
	it := &item{id: e.ID, read: time.Now(), at: e.At}
	w.offerAll(e, it)
	if c := e.Entry.Callback; c != nil && !w.parking.waitsFor(w.targets.callbacks[e.Entry.Tenant], c.URL) {
		w.callBack(e, it)
	}
	if it.open > 0 {
		w.window.add(it)
		w.parkAll(e)
	}
}

// offerAll offers an event to the subscriptions of its tenant, or to none of them if that would take too long.
func (w *owner) offerAll(e *lock.Event, it *item) {
	all := w.targets.byTenant[e.Entry.Tenant]
	if len(all) > 0 && !w.match.may(e.Entry.Tenant, it.read) {
		w.passOver(e, it.read)
		return
	}
	w.bill.add(e.Entry.Tenant, Cost{Offered: len(all)})
	text := &body{event: e}
	for _, t := range all {
		if !w.parking.waitsFor(t, "") {
			w.offer(t, text, it)
		}
	}
}

// body makes the text of an event, once for all who are told the same of it.
type body struct {
	event *lock.Event
	whole []byte
}

func (b *body) of(claims []lock.Claim) []byte {
	if len(claims) != len(b.event.Entry.Claims) {
		return encode(b.event, claims)
	}
	if b.whole == nil {
		b.whole = encode(b.event, claims)
	}
	return b.whole
}

// encode writes an event. One that is too long is told without its metadata.
func encode(e *lock.Event, claims []lock.Claim) []byte {
	return short(event.Of(e, claims), webhook.MaxPayload)
}

// short writes an event without its metadata if that makes it too long.
func short(what *api.Event, longest int) []byte {
	text := marshal(what)
	if len(text) > longest && what.Data.Entry != nil {
		what.Data.Entry.Metadata = nil
		text = marshal(what)
	}
	return text
}

func marshal(e *api.Event) []byte {
	var text bytes.Buffer
	if err := api.Encode(&text, e); err != nil {
		return nil // nothing in it can fail to be JSON
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// offer makes a delivery of an event if the target is told of it.
func (w *owner) offer(t *target, text *body, it *item) {
	e := text.event
	if t.sub == nil || e.ID.Number <= t.From || !it.again && !t.sends() && !t.pausedAfter(e.ID) {
		return
	}
	if !it.again { // which is paid for
		w.match.took(t.tenant, t.steps(e))
	}
	claims := t.filter.Claims(e)
	if len(claims) == 0 {
		return
	}
	payload := text.of(claims)
	w.accept(&delivery{
		target: t, id: e.ID.String(), record: recordName(t.id, e.ID.String()), kind: string(e.Kind), lock: e.Entry.Name(),
		payload: payload, size: len(payload),
	}, it, namesOf(claims))
}

// accept begins with a delivery that an item of the window stands for, unless there are too
// many already, or it is pending: a target that was told before is told again. If that is not
// kept yet the item waits for it too: the one that was there may not be of the window.
func (w *owner) accept(d *delivery, it *item, names []string) {
	t := d.target
	if was := t.pending[d.record]; was != nil {
		if len(was.items) > 0 && !slices.Contains(was.items, it) {
			w.standFor(it, was)
		}
		return
	}
	d.made = w.Now()
	d.progress = beginOf(d, time.Now())
	if !w.admit(d) {
		w.lack(d, it)
		return
	}
	if !it.again { // which is paid for
		w.billMade(t.tenant)
	}
	w.owe(d)
	w.standFor(it, d)
	t.queue(d, names)
	w.start(d)
}

// standFor has an item not be settled before a delivery is made or kept.
func (w *owner) standFor(it *item, d *delivery) {
	d.items = append(d.items, it)
	it.open++
	it.its = append(it.its, d)
}

// beginOf begins with the schedule. It goes by this process's clock, which is never set: the wall clock may
// jump while a delivery waits.
func beginOf(d *delivery, now time.Time) webhook.Progress {
	var notAfter time.Time
	if d.grant != nil && d.grant.Held {
		notAfter = d.grant.lasts
	}
	return webhook.Begin(now, notAfter)
}

// catchUp tells a subscription what happened between when it was made, or changed, and when
// this owner learnt of it; was says what of that it was told already. That it was is kept
// with its state only when all of this is settled.
func (w *owner) catchUp(t *target, was *wish) {
	version := t.sub.Version
	it := &item{read: time.Now(), open: 1, done: func() { t.Taken, t.dirty = max(t.Taken, version), true }}
	defer it.settle()
	defer w.keepAll(it) // no cursor stands for it
	after, end := lock.Before(t.From+1), w.window.last
	if t.Taken > 0 || was != nil {
		after = lock.Before(version + 1)
	}
	if after.Compare(end) >= 0 {
		return
	}
	w.offerPast(t, events.Missed{After: after, Before: end}, was, it)
}

// offerPast offers a target what its tenant's history has of what happened between two events, but what it was
// told of that; and what is not known there it is told to miss.
func (w *owner) offerPast(t *target, m events.Missed, was *wish, it *item) {
	stream, err := w.Locks.Events(w.ctx, service.EventsRequest{Of: lock.OwnTenant, Tenant: t.tenant, After: &m.After})
	if err != nil {
		w.note(t, m, api.MissedUnknown, it)
		return
	}
	defer stream.Close()
	room := make([]*events.Record, 64)
	for {
		given, missed, more := stream.Next(room)
		if missed != nil && missed.Backwards() {
			w.lostPast()
			return
		}
		if missed != nil {
			w.note(t, events.Missed{After: missed.After, Before: earlier(missed.Before, m.Before)}, api.MissedUnknown, it)
		}
		w.bill.add(t.tenant, Cost{Offered: len(given)})
		for _, r := range given {
			if r.ID.Compare(m.Before) > 0 {
				return
			}
			w.startLateOf(t, r.ID)
			if !was.has(&r.Event) {
				w.offer(t, &body{event: &r.Event}, it)
			}
		}
		if more != nil || stream.At().Compare(m.Before) >= 0 {
			return
		}
	}
}

// wish is what a subscription was told before it was changed.
type wish struct {
	sends  bool
	filter event.Filter
}

func (t *target) wish() *wish {
	if t.sub == nil {
		return nil
	}
	return &wish{t.sends(), t.filter}
}

func (h *wish) has(e *lock.Event) bool { return h != nil && h.sends && len(h.filter.Claims(e)) > 0 }

// keepAll has all deliveries of an item kept that stands in no window.
func (w *owner) keepAll(it *item) {
	for _, d := range it.its {
		if !d.over {
			w.keep(d)
		}
	}
	it.its = nil
}

// keepLate has the deliveries kept in the store whose first attempt takes long.
func (w *owner) keepLate(now time.Time) {
	for _, it := range w.window.items[w.window.head:] {
		if now.Sub(it.read) < keepAfter {
			return
		}
		if it.kept {
			continue
		}
		it.kept = true
		for _, d := range it.its {
			if len(d.items) > 0 {
				w.keep(d)
			}
		}
		it.its = nil
	}
}
