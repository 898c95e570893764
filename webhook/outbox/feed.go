package outbox

import (
	"bytes"
	"cmp"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// deliver makes deliveries of an event. Most events have none.
func (w *owner) deliver(e *lock.Event) {
	w.out.startLate()
	if ts := w.out.targets.byTenant[e.Entry.Tenant]; len(ts) > 0 || e.Entry.Callback != nil {
		it := &item{id: e.ID, read: time.Now(), at: e.At}
		for _, t := range ts {
			w.offer(t, e, it)
		}
		w.callBack(e, it)
		w.out.cursor.wait(it)
	}
	w.out.cursor.reached(e.ID)
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
	d := w.out.newDelivery(t, e.ID.String(), e)
	d.Payload = short(event.Of(e, claims), webhook.MaxPayload)
	names := make([]string, 0, len(claims))
	for _, c := range claims {
		names = append(names, c.Name)
	}
	w.out.accept(d, it, names)
}

func (w *dispatch) newDelivery(t *target, id string, e *lock.Event) *delivery {
	f := form{ID: id, Kind: string(e.Kind), Lock: e.Entry.Name()}
	return &delivery{form: f, cell: cell{key: w.keyOf(t, id)}, target: t}
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

// take takes up the subscriptions.
func (w *owner) take(all []*subscription.Subscription, changed <-chan struct{}) {
	w.changed = changed
	was := w.out.targets.byTenant
	w.out.targets.byTenant = map[string][]*target{}
	there := map[*target]bool{}
	for _, sub := range all {
		if shardOf(sub.ID) != w.out.name {
			continue
		}
		t := w.out.targets.of(sub.Tenant, sub.ID)
		there[t] = true
		w.out.targets.byTenant[sub.Tenant] = append(w.out.targets.byTenant[sub.Tenant], t)
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

// change has a subscription go on as it is now: with what is pending, and with what happened since
// the change was written.
func (w *owner) change(t *target, sub *subscription.Subscription) {
	if t.isOther(sub) {
		t.laneOf("").quiet = time.Time{}
	}
	narrowed := t.sub == nil || t.sub.Locks != sub.Locks
	t.sub, t.filter, t.From = sub, filterOf(sub), cmp.Or(t.From, sub.From)
	t.allow()
	if narrowed {
		w.dropOthers(t)
	}
	if t.sends() {
		w.wake(t)
	}
	if t.Taken < sub.Version {
		w.catchUp(t)
	}
	w.lookAt = time.Time{} // a request may have waited for this
}

// dropOthers drops what is pending about locks that the subscription does not select. A client that
// may not use them may change the URL.
func (w *owner) dropOthers(t *target) {
	of := event.Filter{Locks: t.filter.Locks, Within: t.filter.Within}
	for _, d := range t.pending {
		claims := []lock.Claim{}
		for _, name := range d.namesIn() {
			claims = append(claims, lock.Claim{Name: name})
		}
		selected := of.Claims(&lock.Event{Entry: &lock.Entry{Claims: claims}})
		if !d.over && len(selected) < len(claims) {
			w.out.finish(d)
		}
	}
}

// wake schedules the deliveries of a target that is sent something again.
func (w *owner) wake(t *target) {
	for _, d := range t.pending {
		if !d.Queued() && !d.running && d.waitsFor == 0 {
			w.out.schedule(d, d.progress.Due)
		}
	}
}

// forget drops a subscription that was deleted, with all its deliveries.
func (w *owner) forget(t *target) {
	t.now.Store(nil)
	for _, d := range t.pending {
		w.out.finish(d)
	}
	delete(w.out.targets.all, targetName(t.tenant, t.id))
	w.out.eraseState(t)
}

// dropOrphans forgets subscriptions that were deleted while no replica owned the shard.
func (w *owner) dropOrphans() {
	for _, t := range w.out.targets.all {
		if t.id != Callbacks && t.sub == nil {
			w.forget(t)
		}
	}
}
