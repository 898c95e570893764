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
	Asked    int64  `json:"asked_ms,omitempty"`
}

// requests carries out what tenants ask for. A request's record goes when what is to be sent is made
// or written: an owner that takes over before carries it out again.
type requests struct {
	*owner
	looking bool
	busy    map[store.RecordKey]bool
}

// look reads the requests, if there may be new ones.
func (r *requests) look(now time.Time) {
	if r.looking || now.Before(r.lookAt) {
		return
	}
	r.looking, r.lookAt = true, now.Add(requestLook)
	r.ledger.do(func() func() {
		var all []store.Record
		err := r.ledger.each(r.ctx, requestKind(r.name), func(record store.Record) {
			all = append(all, record)
		})
		return func() {
			if r.looking = false; err != nil {
				r.lookAt = time.Now().Add(retryPause)
			}
			for _, record := range all {
				r.execute(&record)
			}
		}
	})
}

// execute carries out a request, unless it has to wait for its subscription or its delivery.
func (r *requests) execute(record *store.Record) {
	var what request
	bad, key := json.Unmarshal(record.Value, &what), record.RecordKey
	t := r.targets.all[targetName(key.Tenant, what.Webhook)]
	if what.Webhook == Callbacks {
		t = r.targets.of(key.Tenant, Callbacks)
	}
	unknown := t == nil || t.sub == nil && t.id != Callbacks
	if r.busy[key] || bad == nil && r.waits(&what, t, unknown) {
		return
	}
	r.busy[key] = true
	c := &cell{key: key, version: record.Version}
	it := &item{read: time.Now(), again: true, open: 1}
	it.done = func() { r.ledger.erase(c, func() { delete(r.busy, key) }) }
	defer it.settle()
	switch {
	case bad != nil, unknown:
	case what.Test != "":
		r.test(t, what.Test, it)
	case what.Delivery != "":
		r.redeliver(t, what.Delivery, it)
	}
}

// waits reports whether a request stays: its subscription may be too new to be known here, or what
// it asks for is pending while nothing is sent, or ends just now.
func (r *requests) waits(what *request, t *target, unknown bool) bool {
	if unknown {
		early := r.Now().Sub(time.UnixMilli(what.Asked)) < orphanTime
		if early {
			r.lookAt = time.Now().Add(retryPause)
		}
		return early
	}
	d := t.pending[recordOf(t.id, what.Delivery)]
	return what.Delivery != "" && d != nil && (d.over || !t.sends())
}

// test sends a message without an event.
func (r *requests) test(t *target, id string, it *item) {
	d := &delivery{cell: cell{key: r.keyOf(t, id)}, target: t}
	d.ID, d.Kind = id, api.WebhookTest
	d.Payload = marshal(&api.Event{
		ID: id, Type: api.WebhookTest, Timestamp: api.InstantOf(r.Now()),
		Data: api.EventData{Number: r.cursor.last.Number, Tenant: t.tenant},
	})
	r.accept(d, it, nil)
	r.keepAll(it)
}

// redeliver makes a delivery again: now if it is pending, or else from what is known of its event.
func (r *requests) redeliver(t *target, id string, it *item) {
	if d := t.pending[recordOf(t.id, id)]; d != nil {
		it.hold(d)
		if r.hasten(d); d.first {
			r.keep(d) // its first attempt comes by itself
		}
		return
	}
	e, err := find(r.ctx, r.Locks, lock.OwnTenant, t.tenant, t.sub, id)
	at, bad := lock.ParseEventID(id)
	switch {
	case e != nil && t.sub == nil:
		r.callBack(e, it)
	case e != nil:
		r.offer(t, e, it)
	case t.sub != nil && bad == nil && (err != nil || at.Compare(r.cursor.last) <= 0):
		r.note(t, gapAt(at), api.MissedUnknown, it) // it is not known here
	}
	r.keepAll(it)
}
