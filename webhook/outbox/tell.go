package outbox

import (
	"bytes"
	"cmp"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/api/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// tell makes deliveries of an event. Most events have none.
func (w *owner) tell(e *lock.Event) {
	w.startLate(e.ID)
	it := &item{id: e.ID, read: time.Now(), at: e.At}
	for _, t := range w.targets.byTenant[e.Entry.Tenant] {
		w.offer(t, e, it)
	}
	w.callBack(e, it)
	if it.open > 0 {
		w.cursor.items = append(w.cursor.items, it)
	}
	w.cursor.reached(e.ID)
	w.cursor.passed = true
}

// short writes an event, without its metadata if that makes it too long.
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

// offer makes a delivery of an event if the subscription selects it.
func (w *owner) offer(t *target, e *lock.Event, it *item) {
	if t.sub == nil || !t.gets(e.ID) && !(it.again && e.ID.Number > t.From) {
		return
	}
	claims := t.filter.Claims(e)
	if len(claims) == 0 {
		return
	}
	id := e.ID.String()
	d := &delivery{cell: t.cell(w.keyOf(t, id)), target: t, id: id, kind: string(e.Kind), lock: e.Entry.Name()}
	d.payload = short(event.Of(e, claims), webhook.MaxPayload)
	names := make([]string, 0, len(claims))
	for _, c := range claims {
		names = append(names, c.Name)
	}
	w.accept(d, it, names)
}

// accept begins with a delivery, unless it is pending already, or the target is full.
func (w *dispatch) accept(d *delivery, it *item, names []string) {
	t := d.target
	if was := t.pending[d.key.ID]; was != nil {
		if len(was.items) > 0 {
			it.hold(was)
		}
		return
	}
	d.size, d.made = len(d.payload), w.Now()
	d.begin(time.Now())
	if !w.targets.admit(d) {
		w.full(d, it)
		return
	}
	it.hold(d)
	t.queue(d, names)
	w.attempt(d)
}

// full handles a delivery for which there is no space.
func (w *dispatch) full(d *delivery, it *item) {
	t := d.target
	if d.version == 0 && !d.busy && !d.unsure {
		delete(t.cells, d.key.ID)
	}
	if id := d.event(); id != (lock.EventID{}) {
		w.note(t, gapAt(id), api.MissedForRoom, it)
		return
	}
	d.progress.State = webhook.StateFailed
	t.remember(d)
}

// take takes up the subscriptions.
func (w *owner) take(all []*subscription.Subscription, changed <-chan struct{}) {
	w.told = changed
	was := w.targets.byTenant
	w.targets.byTenant = map[string][]*target{}
	there := map[*target]bool{}
	for _, sub := range all {
		if shardOf(sub.ID) != w.name {
			continue
		}
		t := w.targets.of(sub.Tenant, sub.ID)
		there[t] = true
		w.targets.byTenant[sub.Tenant] = append(w.targets.byTenant[sub.Tenant], t)
		if t.sub != sub {
			w.change(t, sub)
		}
	}
	for _, ts := range was {
		for _, t := range ts {
			if !there[t] {
				w.forget(t)
			}
		}
	}
}

// change has a subscription go on as it is now: with what it is owed, and with what happened since
// the change was written.
func (w *owner) change(t *target, sub *subscription.Subscription) {
	if t.isOther(sub) {
		t.quiet.clear()
	}
	t.sub, t.filter, t.From = sub, filterOf(sub), cmp.Or(t.From, sub.From)
	t.allow()
	w.wake(t)
	if t.Taken < sub.Version {
		w.catchUp(t)
	}
	w.requests.looked = time.Time{} // one may have waited for this
}

// wake schedules the deliveries of a target that is sent something again.
func (w *dispatch) wake(t *target) {
	if !t.sends() {
		return
	}
	for _, d := range t.pending {
		if !d.Queued() && !d.running && d.waitsFor == 0 {
			w.schedule(d, d.progress.Due)
		}
	}
}

// catchUp offers a subscription what happened between its first write that no owner has caught up to,
// and when this owner learned of it.
// That it caught up is written after these deliveries are made or written, so that the next owner
// does it again otherwise. What it got under its former fields comes again, with the same id.
func (w *owner) catchUp(t *target) {
	version, after := t.sub.Version, lock.Before(t.From+1)
	if t.Taken > 0 {
		after = lock.Before(t.sub.FirstAfter(t.Taken) + 1)
	}
	it := &item{read: time.Now(), open: 1}
	it.done = func() { t.Taken, t.dirty = max(t.Taken, version), true }
	defer it.settle()
	if after.Compare(w.cursor.last) < 0 {
		w.offerPast(t, events.Missed{After: after, Before: w.cursor.last}, it)
	}
	w.keepAll(it)
}

// offerPast offers a subscription what its tenant's history has between two events. The rest is missed.
func (w *owner) offerPast(t *target, m events.Missed, it *item) {
	err := past(w.ctx, w.Locks, lock.OwnTenant, t.tenant, m.After, func(missed *events.Missed, e *lock.Event) bool {
		switch {
		case missed != nil && missed.Backwards():
			return false
		case missed != nil:
			m.After = earlier(missed.Before, m.Before)
			w.note(t, events.Missed{After: missed.After, Before: m.After}, api.MissedUnknown, it)
		case e.ID.Compare(m.Before) > 0:
			return false
		default:
			w.offer(t, e, it)
		}
		return m.After.Compare(m.Before) < 0
	})
	if err != nil {
		w.note(t, m, api.MissedUnknown, it)
	}
}

// keepAll writes the deliveries of an item that are not made yet.
func (w *dispatch) keepAll(it *item) {
	all := it.deliveries
	it.deliveries = nil
	for _, d := range all {
		if len(d.items) > 0 && !d.over {
			w.keep(d)
		}
	}
}

// keepLate writes the deliveries whose first attempt takes long, or that are too many to wait for.
func (w *dispatch) keepLate(now time.Time) {
	for i, it := range w.cursor.items {
		if now.Sub(it.read) < keepAfter && i >= len(w.cursor.items)-maxWindow/2 {
			return
		}
		w.keepAll(it)
	}
}
