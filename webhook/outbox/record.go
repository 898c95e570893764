package outbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// missedRecord names the record of what a target misses: there is at most one.
const missedRecord = "missed"

// recordOf is the id of the record of a target's delivery. The record of a gap may be about more by
// now than the delivery.
func recordOf(target, delivery string) string {
	if _, ok := gapOf(delivery); ok {
		delivery = missedRecord
	}
	return target + ":" + delivery
}

// targetOf is the target of a delivery's record.
func targetOf(r store.Record) string {
	id, _, _ := strings.Cut(r.ID, ":")
	return id
}

// form is a delivery in the store. Its instants are by the wall clock, in milliseconds.
type form struct {
	ID       string          `json:"id"`             // of the message, the same with every attempt
	Kind     string          `json:"kind"`           // of the event
	Lock     string          `json:"lock,omitempty"` // its first lock, for people
	Payload  json.RawMessage `json:"payload"`        // without a token
	Call     *callbackCall   `json:"call,omitempty"` // of a callback
	Because  string          `json:"missed_because,omitempty"`
	Made     int64           `json:"made_ms"` // of the delivery
	Due      int64           `json:"due_ms"`
	NotAfter int64           `json:"not_after_ms,omitempty"`
	Steps    int             `json:"attempts_made"` // of the schedule
	Tried    int             `json:"tried,omitempty"`
	Attempts []Attempt       `json:"attempts,omitempty"` // the last of them
	stamp
}

// readForm reads a delivery.
func readForm(r store.Record) (*form, error) {
	var f form
	err := json.Unmarshal(r.Value, &f)
	_, gap := gapOf(f.ID)
	switch {
	case err != nil:
		return nil, err
	case f.ID == "" || f.Steps < 0 || (f.Kind == api.EventsMissed) != gap:
		return nil, errors.New("no server has written it")
	case targetOf(r) == Callbacks && f.Call == nil:
		return nil, errors.New("it has no receiver")
	}
	f.Tried = max(f.Steps, f.Tried)
	return &f, nil
}

// row is the delivery as lists show it.
func (f *form) row(state webhook.State) Delivery {
	return Delivery{
		ID: f.ID, Type: f.Kind, Lock: f.Lock, State: state, Made: time.UnixMilli(f.Made).UTC(),
		Tried: f.Tried, Attempts: f.Attempts,
	}
}

// namesIn are what first attempts keep an order by: the locks, or the entry of a callback.
func (f *form) namesIn() []string {
	var e api.Event
	switch {
	case f.Call != nil:
		return []string{string(f.Call.Entry)}
	case json.Unmarshal(f.Payload, &e) != nil:
		return nil
	case e.Data.Lock != "":
		return []string{e.Data.Lock}
	}
	return e.Data.Locks
}

// keyOf is the key of a delivery's record.
func (w *dispatch) keyOf(t *target, id string) store.RecordKey {
	return store.RecordKey{Kind: pendingKind(w.name), Tenant: t.tenant, ID: recordOf(t.id, id)}
}

// encode writes a delivery. Instants of this process's clock become those of the wall clock.
func (w *dispatch) encode(d *delivery) []byte {
	wall := func(at time.Time) int64 { return w.Now().Add(time.Until(at)).UnixMilli() }
	d.stamp, d.Due, d.Steps = w.ledger.stamp, wall(d.progress.Due), d.progress.Attempts
	if !d.progress.NotAfter.IsZero() {
		d.NotAfter = wall(d.progress.NotAfter)
	}
	return store.Encode(&d.form)
}

// loadPending loads the pending deliveries from the store.
func (w *dispatch) loadPending() error {
	defer func() {
		slices.SortStableFunc(w.late, func(a, b *delivery) int { return a.event().Compare(b.event()) })
	}()
	return w.ledger.each(w.ctx, pendingKind(w.name), func(r store.Record) {
		t := w.targets.of(r.Tenant, targetOf(r))
		f, err := readForm(r)
		if err != nil {
			w.Logger.Error("a delivery in the store cannot be read, and counts as missed",
				"tenant", r.Tenant, "record", r.ID, "error", err)
			w.unreadable(t, r)
			return
		}
		w.adopt(&delivery{
			form: *f, cell: cell{key: r.RecordKey, version: r.Version}, target: t, size: len(f.Payload),
		})
	})
}

func (w *dispatch) adopt(d *delivery) {
	ours := func(ms int64) time.Time { return time.Now().Add(time.UnixMilli(ms).Sub(w.Now())) }
	d.last = time.Now()
	due := ours(d.Due)
	if latest := time.Now().Add(maxWait); due.After(latest) {
		due = latest
	}
	d.progress = webhook.Progress{State: webhook.StatePending, Attempts: d.Steps, Due: due}
	if d.NotAfter > 0 {
		d.progress.NotAfter = ours(d.NotAfter)
	}
	if d.Call != nil {
		d.Call.Tenant = d.target.tenant
	}
	d.gap, _ = gapOf(d.ID)
	w.targets.add(d)
	if d.held = d.Steps == 0 && !d.tellsMissed(); d.held {
		d.names = d.namesIn()
		w.late = append(w.late, d)
	} else {
		w.schedule(d, due)
	}
}

// unreadable replaces a record that cannot be read. A subscription gets events.missed. A callback
// is derived again from its entry, and written over the record.
func (w *dispatch) unreadable(t *target, r store.Record) {
	d := &delivery{cell: cell{key: r.RecordKey, version: r.Version}, target: t, over: true}
	_, d.ID, _ = strings.Cut(r.ID, ":")
	w.targets.add(d)
	gap := events.Missed{Before: w.cursor.at}
	if event := d.event(); event.Number > 0 {
		gap = gapAt(event)
	}
	if t.id == Callbacks || gap.Before.Number == 0 {
		w.unread = append(w.unread, d)
		return
	}
	w.giveUp(d, gap, api.MissedUnreadable)
}

// loadStates reads the states of all targets.
func (w *dispatch) loadStates() error {
	return w.ledger.each(w.ctx, stateKind(w.name), func(r store.Record) {
		s, err := readState(r)
		if err != nil {
			w.Logger.Error("the state of a webhook cannot be read",
				"tenant", r.Tenant, "webhook", r.ID, "error", err)
		}
		t := w.targets.of(r.Tenant, r.ID)
		t.state, t.stateCell = s, cell{key: r.RecordKey, version: r.Version}
	})
}

// writeStates writes some of the states that have changed, first those for which events wait, then
// the oldest.
func (w *dispatch) writeStates(now time.Time, most int, since time.Duration) {
	var due []*target
	for _, t := range w.targets.all {
		if t.advance(); len(t.unsaved) > 0 {
			t.written = time.Time{}
		}
		if t.dirty && !t.stateCell.busy && now.Sub(t.written) >= since {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *target) int { return a.written.Compare(b.written) })
	for _, t := range due[:min(len(due), most)] {
		t.dirty, t.written = false, now
		t.stateCell.key = store.RecordKey{Kind: stateKind(w.name), Tenant: t.tenant, ID: t.id}
		saved, at := t.unsaved, position(t.Behind)
		t.unsaved, t.sent = nil, at
		w.ledger.save(&t.stateCell, t.encode(w.ledger.stamp), func() {
			t.stored = at
			for _, it := range saved {
				it.settle()
			}
			if t.gone {
				w.eraseState(t)
			}
		})
	}
}

// eraseState deletes the state of a subscription that was deleted.
func (w *dispatch) eraseState(t *target) {
	if t.dirty, t.gone = false, true; !t.stateCell.busy {
		w.ledger.erase(&t.stateCell, func() {})
	}
}
