package outbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
)

// request is what a tenant asks of the owner of its subscription.
type request struct {
	Webhook  string `json:"webhook"`
	Test     string `json:"test,omitempty"`     // the id of a test to send
	Delivery string `json:"delivery,omitempty"` // to send again: the id of its event
	Since    int64  `json:"since_ms,omitempty"` // to send all again from then on
}

// requests is what an owner knows of those that are asked of it.
type requests struct {
	told    <-chan struct{} // holds a value after the records have changed
	looking bool
	looked  time.Time
	after   string                        // of the next page
	strange map[store.RecordKey]time.Time // when those were first seen that are about nothing that is known
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
			if err != nil || page.Next != "" {
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

// execute does what is asked for, once: the record goes first. A request that comes to
// nothing because the owner ends right then can be made again.
func (w *owner) execute(record store.Record) {
	var r request
	bad := json.Unmarshal(record.Value, &r)
	if bad == nil && w.early(record.RecordKey, r.Webhook) {
		return
	}
	w.writes.do(func(ctx context.Context) func() {
		err := w.Records.Delete(ctx, record.RecordKey, record.Version)
		return func() {
			t := w.targets.all[targetName(record.Tenant, r.Webhook)]
			if r.Webhook == Callbacks {
				t = w.target(record.Tenant, Callbacks)
			}
			if err != nil || bad != nil || t == nil {
				return // another owner does it, or there is nothing to do it for
			}
			w.serve(t, &r)
		}
	})
}

func (w *owner) serve(t *target, r *request) {
	it := &item{read: time.Now(), again: true}
	switch {
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
		Type: api.WebhookTest, Timestamp: api.InstantOf(now), Data: api.EventData{Number: w.window.last.Number, Tenant: t.tenant},
	})
	w.accept(&delivery{
		target: t, id: id, record: recordName(t.id, id), kind: api.WebhookTest, payload: payload, size: len(payload),
	}, it, nil)
}

// again sends an event once more: now, if it is owed anyway.
func (w *owner) again(t *target, id string, it *item) {
	if d := t.pending[recordOf(t.id, id)]; d != nil {
		w.hasten(d)
		return
	}
	event, err := lock.ParseEventID(id)
	if err != nil {
		return
	}
	if t.id == Callbacks && event.Index == 0 {
		if e := heldCaller(w.Locks, t.tenant, event); e != nil {
			told := lock.EventOfGrant(e)
			told.ID, told.At = event, time.Now()
			w.callBack(&told, it)
		}
		return
	}
	known := false
	w.replay(t, justBefore(event), it, func(e *lock.Event) (tell, more bool) {
		known = e.ID == event
		return known, false
	})
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

// allAgain sends everything again that happened since. What is not known any more, and for what there
// is no room, is told to be missed.
func (w *owner) allAgain(t *target, since time.Time, it *item) {
	for _, d := range t.pending {
		if !d.made.Before(since) {
			w.hasten(d)
		}
	}
	gaps := w.replay(t, lock.EventID{}, it, func(e *lock.Event) (tell, more bool) {
		tell = !e.At.Before(since) && e.ID.Number > t.From && len(t.filter.Claims(e)) > 0
		if tell && len(t.pending) >= maxOfTarget/2 {
			w.note(t, events.Missed{After: justBefore(e.ID), Before: w.window.last}, api.MissedForRoom, it)
			return false, false
		}
		return tell, true
	})
	for _, m := range gaps {
		if m.before(since) || !since.Before(w.wall(w.began)) && m.Before.Compare(w.from) <= 0 {
			continue // all of it happened earlier
		}
		m.After = m.After.Later(lock.Before(t.From + 1))
		if m.After.Compare(m.Before) < 0 {
			w.note(t, m.Missed, api.MissedUnknown, it)
		}
	}
}

// gap is something of the past that is not known, and what happened next.
type gap struct {
	events.Missed
	next *lock.Event // nil if nothing did
}

// before reports whether all of it happened before an instant.
func (g *gap) before(at time.Time) bool { return g.next != nil && g.next.At.Before(at) }

// replay offers events of the past again to a target, while there are more to be, and returns what of
// them is not known.
func (w *owner) replay(t *target, after lock.EventID, it *item, which func(*lock.Event) (tell, more bool)) (gaps []gap) {
	stream, err := w.Locks.Events(w.ctx, service.EventsRequest{Of: lock.OwnTenant, Tenant: t.tenant, After: &after})
	if err != nil {
		return []gap{{Missed: events.Missed{After: after, Before: w.window.last}}}
	}
	defer stream.Close()
	room := make([]*events.Record, 64)
	for {
		given, missed, more := stream.Next(room)
		if missed != nil && missed.Before.Compare(w.window.last) <= 0 {
			gaps = append(gaps, gap{Missed: *missed})
		}
		for _, r := range given {
			if r.ID.Compare(w.window.last) > 0 {
				return gaps // it is told anyway
			}
			if n := len(gaps); n > 0 && gaps[n-1].next == nil {
				gaps[n-1].next = &r.Event
			}
			tell, goOn := which(&r.Event)
			if tell {
				w.give(t, &parked{all: true}, &r.Event, it)
			}
			if !goOn {
				return gaps
			}
		}
		if more != nil {
			return gaps
		}
	}
}
