package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// request is what a tenant asks of the owner of its subscription.
type request struct {
	Webhook  string `json:"webhook"`
	Test     string `json:"test,omitempty"`     // the id of a test to send
	Delivery string `json:"delivery,omitempty"` // to send again: the id of its event
	Since    int64  `json:"since_ms,omitempty"` // to send all again from then on
	stamp           // of who carries it out
}

// requests is what an owner knows of those that are asked of it.
type requests struct {
	told    <-chan struct{} // holds a value after the records have changed
	looking bool
	looked  time.Time
	after   string                        // of the next page
	strange map[store.RecordKey]time.Time // when those were first seen that are about nothing that is known
	busy    map[store.RecordKey]bool      // those that are being carried out
	replays map[string]bool               // the names of targets to which everything is told again, or is to be in a moment
	turns   []string                      // the tenants that wait for a place to have that done, the next first
	waits   map[string]bool               // those of which a request was in the list that asks for one, as far as it was read
}

// watch follows the records until stop is called, which waits for that.
func (r *requests) watch(w *owner) (stop func()) {
	r.told, stop = store.RecordChanges(w.ctx, w.Records, requestKind(w.name))
	return stop
}

// requestPause is how often an owner looks for requests at least.
const requestPause = 30 * time.Second

// strangeTime is for how long a request waits for the owner to learn of its subscription, which
// may have been made just before.
const strangeTime = 10 * time.Second

// lookAtRequests does what is asked for, if there is something new.
func (w *owner) lookAtRequests(now time.Time) {
	r := &w.asked
	if r.looking {
		return
	}
	select {
	case <-r.told:
	default:
		if pause := now.Sub(r.looked); pause < retryPause || pause < requestPause && len(r.strange) == 0 {
			return
		}
	}
	r.looking, r.looked = true, now
	after := r.after
	w.writes.do(func(ctx context.Context) func() {
		page, err := w.Records.List(ctx, store.RecordQuery{Kind: requestKind(w.name), After: after})
		return func() {
			r.looking, r.after = false, page.Next
			for _, record := range page.Records {
				w.execute(record)
			}
			if err != nil || page.Next != "" || r.listed() {
				r.looked = time.Time{}
			}
		}
	})
}

// early reports whether a request is about what the owner may still learn of.
func (w *owner) early(k store.RecordKey, webhook string) bool {
	r := &w.asked
	if t := w.targets.all[targetName(k.Tenant, webhook)]; webhook == Callbacks || t != nil && t.sub != nil {
		delete(r.strange, k)
		return false
	}
	if r.strange == nil {
		r.strange = map[store.RecordKey]time.Time{}
	}
	since, ok := r.strange[k]
	if !ok {
		r.strange[k] = time.Now()
		return true
	}
	if time.Since(since) < strangeTime {
		return true
	}
	delete(r.strange, k)
	return false
}

// execute does what is asked for. The record is written first, so that one owner does it, and goes when all
// that is to be sent is kept: whoever takes over before that does it again.
func (w *owner) execute(record store.Record) {
	var r request
	bad, key := json.Unmarshal(record.Value, &r), record.RecordKey
	if w.asked.busy[key] || bad == nil && (w.early(key, r.Webhook) || !w.mayReplay(key.Tenant, &r)) {
		return
	}
	w.asked.begin(key)
	if bad != nil {
		w.executed(key, record.Version)
		return
	}
	if r.replays() {
		w.asked.replays[targetName(key.Tenant, r.Webhook)] = true // others that were found with it wait
	}
	r.stamp = w.stamp()
	w.writes.do(func(ctx context.Context) func() {
		version, err := w.Records.Put(ctx, store.RecordPut{RecordKey: key, Value: store.Encode(&r), Version: record.Version})
		return func() {
			if err != nil {
				delete(w.asked.busy, key) // another owner does it, or it is tried again
				w.asked.replayed(key.Tenant, &r)
				return
			}
			w.serve(key.Tenant, &r, func() { w.executed(key, version) })
		}
	})
}

func (r *requests) begin(k store.RecordKey) {
	if r.busy == nil {
		r.busy, r.replays = map[store.RecordKey]bool{}, map[string]bool{}
	}
	r.busy[k] = true
}

// replays reports whether everything is to be told again.
func (r *request) replays() bool { return r.Since > 0 && r.Test == "" && r.Delivery == "" }

// replayed has others wait no longer for what a request would have told again.
func (r *requests) replayed(tenant string, what *request) {
	if what.replays() {
		delete(r.replays, targetName(tenant, what.Webhook))
	}
}

// executed takes away a request that was carried out.
func (w *owner) executed(k store.RecordKey, version uint64) {
	w.writes.do(func(ctx context.Context) func() {
		err := w.Records.Delete(ctx, k, version)
		return func() {
			if err == nil || errors.Is(err, lock.NotFound) || errors.Is(err, lock.Changed) {
				delete(w.asked.busy, k)
				return
			}
			time.AfterFunc(retryPause, func() { w.bring(func() { w.executed(k, version) }) })
		}
	})
}

// serve carries out what is asked for; done is called when all of it is kept that is to be sent.
func (w *owner) serve(tenant string, r *request, done func()) {
	t := w.targets.all[targetName(tenant, r.Webhook)]
	if r.Webhook == Callbacks {
		t = w.target(tenant, Callbacks)
	}
	it := &item{read: time.Now(), again: true, open: 1, done: done}
	defer it.settle()
	switch {
	case t == nil: // there is nothing to do it for
		w.asked.replayed(tenant, r)
		return
	case r.Test != "":
		w.test(t, r.Test, it)
	case r.Delivery != "":
		w.again(t, r.Delivery, it)
	case r.Since > 0:
		w.allAgain(t, time.UnixMilli(r.Since), it)
	}
	w.keepAll(it)
}

// test sends something that nothing happened for.
func (w *owner) test(t *target, id string, it *item) {
	now := w.Now()
	payload := marshal(&api.Event{
		ID: id, Type: api.WebhookTest, Timestamp: api.InstantOf(now), Data: api.EventData{Number: w.window.last.Number, Tenant: t.tenant},
	})
	w.accept(&delivery{
		target: t, id: id, record: recordName(t.id, id), kind: api.WebhookTest, payload: payload, size: len(payload),
	}, it, nil)
}

// again sends an event once more: now, if it is owed anyway.
func (w *owner) again(t *target, id string, it *item) {
	if d := t.pending[recordOf(t.id, id)]; d != nil {
		w.hastenFor(it, d)
		return
	}
	if t.id == Callbacks {
		if told, err := findCall(w.ctx, w.Locks, lock.OwnTenant, t.tenant, id); err == nil && told != nil {
			w.callBack(told, it)
		}
		return
	}
	event, err := lock.ParseEventID(id)
	if err != nil {
		return
	}
	known := w.replayOne(t, event, it)
	if !known && t.sub != nil { // any more, or by this one
		w.note(t, gapAt(event), api.MissedUnknown, it)
	}
}

// hasten has an attempt made now that was to come later. It takes no step of the schedule: else
// whoever asks again and again while a receiver is away has used it up by the time it is back.
func (w *owner) hasten(d *delivery) {
	if d.first || d.running {
		return
	}
	w.due.remove(d)
	d.asked = true
	w.attempt(d)
}

// hastenFor does so for a request, which is carried out once that is kept: whoever takes over before the
// attempt makes it.
func (w *owner) hastenFor(it *item, d *delivery) {
	if w.hasten(d); d.asked && !d.over {
		w.standFor(it, d)
	}
}
