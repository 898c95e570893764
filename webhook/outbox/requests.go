package outbox

import (
	"encoding/json"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// request is a test or a redelivery that a tenant asks for.
type request struct {
	Webhook  string `json:"webhook"`
	Test     string `json:"test,omitempty"`     // the id of a test to send
	Delivery string `json:"delivery,omitempty"` // the id of a delivery to make again
}

// look reads the requests, if there may be new ones. The owner removes a request's record when its
// deliveries are made or written: an owner that takes over before carries it out again.
func (w *owner) look(now time.Time) {
	if w.looking || now.Before(w.lookAt) {
		return
	}
	w.looking, w.lookAt = true, now.Add(requestLook)
	w.out.ledger.do(func() func() {
		var all []store.Record
		err := w.out.ledger.each(w.out.ctx, requestKind(w.out.name), func(record store.Record) {
			all = append(all, record)
		})
		return func() {
			if w.looking = false; err != nil {
				w.lookAt = time.Now().Add(retryPause)
			}
			for _, record := range all {
				w.execute(&record)
			}
		}
	})
}

// execute carries out a request, unless it has to wait for its subscription or its delivery.
func (w *owner) execute(record *store.Record) {
	var what request
	bad, key := json.Unmarshal(record.Value, &what), record.RecordKey
	t := w.out.targets.all[targetName(key.Tenant, what.Webhook)]
	if what.Webhook == Callbacks {
		t = w.out.targets.of(key.Tenant, Callbacks)
	}
	unknown := t == nil || t.sub == nil && t.id != Callbacks
	if w.doing[key] || bad == nil && w.waits(key, &what, t, unknown) {
		return
	}
	delete(w.early, key)
	w.doing[key] = true
	c := &cell{key: key, version: record.Version}
	it := &item{read: time.Now(), again: true, open: 1}
	it.done = func() { w.out.ledger.erase(c, func() { delete(w.doing, key) }) }
	defer it.settle()
	switch {
	case bad != nil, unknown:
	case what.Test != "":
		w.test(t, what.Test, it)
	case what.Delivery != "":
		w.redeliver(t, what.Delivery, it)
	}
}

// waits reports whether a request stays: its subscription may be too new to be known here, or what
// it asks for is pending while nothing is sent, or ends just now.
func (w *owner) waits(key store.RecordKey, what *request, t *target, unknown bool) bool {
	if !unknown {
		d := t.pending[recordOf(t.id, what.Delivery)]
		if what.Delivery == "" || d == nil || !d.over {
			return what.Delivery != "" && d != nil && !t.sends()
		}
	} else if since, seen := w.early[key]; !seen {
		w.early[key] = time.Now()
	} else if time.Since(since) >= orphanTime {
		return false
	}
	w.lookAt = time.Now().Add(retryPause)
	return true
}

// test sends a message without an event.
func (w *owner) test(t *target, id string, it *item) {
	d := &delivery{cell: cell{key: w.out.keyOf(t, id)}, target: t}
	d.ID, d.Kind = id, api.WebhookTest
	d.Payload = marshal(&api.Event{
		ID: id, Type: api.WebhookTest, Timestamp: api.InstantOf(w.out.Now()),
		Data: api.EventData{Number: w.out.cursor.last.Number, Tenant: t.tenant},
	})
	w.out.accept(d, it, nil)
	w.out.keepAll(it)
}

// redeliver makes a delivery again: now if it is pending, or else from what is known of its event.
func (w *owner) redeliver(t *target, id string, it *item) {
	if d := t.pending[recordOf(t.id, id)]; d != nil {
		it.hold(d)
		if w.out.hasten(d); d.first {
			w.out.keep(d) // its first attempt comes by itself
		}
		return
	}
	e, err := w.out.history.find(w.out.ctx, lock.OwnTenant, t.tenant, t.sub, id)
	at, bad := lock.ParseEventID(id)
	switch {
	case e != nil && t.sub == nil:
		w.callBack(e, it)
	case e != nil:
		w.offer(t, e, it)
	case t.sub != nil && bad == nil && (err != nil || at.Compare(w.out.cursor.last) <= 0):
		w.out.note(t, gapAt(at), api.MissedUnknown, it) // it is not known here
	}
	w.out.keepAll(it)
}
