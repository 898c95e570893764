package outbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// recordName is the id of the record of a target's delivery.
func recordName(target, id string) string { return target + ":" + id }

// targetOf is the target of a delivery's record.
func targetOf(r store.Record) string {
	id, _, _ := strings.Cut(r.ID, ":")
	return id
}

// owedForm is a delivery in the store. Its instants are by the wall clock.
type owedForm struct {
	ID          string          `json:"id"`
	Kind        string          `json:"kind"`
	Lock        string          `json:"lock,omitempty"`
	Payload     json.RawMessage `json:"payload"`
	Call        *callbackCall   `json:"call,omitempty"`
	MissedAfter string          `json:"missed_after,omitempty"`
	Because     string          `json:"missed_because,omitempty"`
	Made        int64           `json:"made_ms"`
	Due         int64           `json:"due_ms"`
	NotAfter    int64           `json:"not_after_ms,omitempty"`
	Steps       int             `json:"attempts_made"` // of the schedule
	Tried       int             `json:"tried,omitempty"`
	Attempts    []Attempt       `json:"attempts,omitempty"`
	stamp
}

// readOwed reads a delivery.
func readOwed(r store.Record) (*owedForm, error) {
	var f owedForm
	err := json.Unmarshal(r.Value, &f)
	switch {
	case err != nil:
		return nil, err
	case f.ID == "" || f.Steps < 0:
		return nil, errors.New("no server has written it")
	case targetOf(r) == Callbacks && f.Call == nil:
		return nil, errors.New("it has no receiver")
	}
	return &f, nil
}

func (f *owedForm) delivery() Delivery {
	return Delivery{
		ID: f.ID, Type: f.Kind, Lock: f.Lock, State: webhook.StatePending, Tried: max(f.Steps, f.Tried),
		Made: time.UnixMilli(f.Made).UTC(), Due: time.UnixMilli(f.Due).UTC(), Attempts: f.Attempts,
	}
}

func (f *owedForm) isOf(d Delivery) bool { return d.ID == f.ID }

// namesIn are what first attempts keep an order by: the locks, or the entry of a callback.
func (f *owedForm) namesIn() []string {
	if f.Call != nil {
		return []string{string(f.Call.Entry)}
	}
	var e api.Event
	switch {
	case json.Unmarshal(f.Payload, &e) != nil:
		return nil
	case e.Data.Lock != "":
		return []string{e.Data.Lock}
	}
	return e.Data.Locks
}

// missed is the gap of an events.missed. Earlier versions named its later end alone.
func (f *owedForm) missed() events.Missed {
	m, ok := gapOf(f.ID)
	if !ok {
		m.After, _ = lock.ParseEventID(f.MissedAfter)
		m.Before, _ = lock.ParseEventID(f.ID)
	}
	return m
}

// keyOf is the key of a delivery's record.
func (w *dispatch) keyOf(t *target, id string) store.RecordKey {
	return store.RecordKey{Kind: owedKind(w.name), Tenant: t.tenant, ID: recordName(t.id, id)}
}

// wall is an instant of this process's clock by the wall clock, and ours the reverse.
func (w *dispatch) wall(at time.Time) time.Time { return w.Now().Add(time.Until(at)) }
func (w *dispatch) ours(at time.Time) time.Time { return time.Now().Add(at.Sub(w.Now())) }

func (w *dispatch) encode(d *delivery, by stamp) []byte {
	f := owedForm{
		stamp: by, ID: d.id, Kind: d.kind, Lock: d.lock, Payload: d.payload, Call: d.call,
		Made: d.made.UnixMilli(), Due: w.wall(d.progress.Due).UnixMilli(),
		Steps: d.progress.Attempts, Tried: d.tried, Attempts: d.attempts,
	}
	if !d.progress.NotAfter.IsZero() {
		f.NotAfter = w.wall(d.progress.NotAfter).UnixMilli()
	}
	if d.tellsMissed() {
		f.MissedAfter, f.Because = d.missed.After.String(), d.because
	}
	return store.Encode(f)
}

// keep writes a delivery as it is now; then it is settled.
func (w *dispatch) keep(d *delivery) {
	if d.stale = true; d.busy || d.over {
		return // until that call has ended
	}
	d.stale = false
	encode := func(by stamp) []byte { return w.encode(d, by) }
	w.ledger.save(d.cell, encode, func(err error) { w.kept(d, err) })
}

func (w *dispatch) kept(d *delivery, err error) {
	switch {
	case d.over && d.untold:
	case d.over:
		w.erase(d)
	case err != nil:
		w.Logger.Debug("a delivery was not written, and is tried again", "shard", w.name, "error", err)
		w.ledger.after(retryPause, func() { w.keep(d) })
	case d.stale:
		w.keep(d)
	default:
		w.cursor.soon = true
		d.settle()
	}
}

// erase deletes the record of a delivery that is over. A delivery that has its name by then is
// written after that.
func (w *dispatch) erase(d *delivery) {
	if d.busy {
		return // until that call has ended
	}
	w.ledger.erase(d.cell, func() {
		t := d.target
		next := t.pending[d.key.ID]
		switch {
		case next == nil:
			delete(t.cells, d.key.ID)
		case next.stale:
			w.keep(next)
		}
	})
}

// loadOwed takes up the deliveries that are in the store.
func (w *dispatch) loadOwed() error {
	err := w.ledger.each(w.ctx, owedKind(w.name), func(r store.Record) {
		t := w.targets.of(r.Tenant, targetOf(r))
		if t.pending[r.ID] != nil || t.cells[r.ID] != nil {
			return // this is another attempt to begin
		}
		f, err := readOwed(r)
		if err != nil {
			w.Logger.Error("a delivery in the store cannot be read, and counts as missed",
				"tenant", r.Tenant, "record", r.ID, "error", err)
			w.unreadable(t, r)
			return
		}
		w.adopt(t, r, f)
	})
	slices.SortStableFunc(w.late, func(a, b *delivery) int { return a.event().Compare(b.event()) })
	return err
}

func (w *dispatch) adopt(t *target, r store.Record, f *owedForm) {
	d := &delivery{
		cell: t.cell(r.RecordKey), target: t, id: f.ID, kind: f.Kind, lock: f.Lock, size: len(f.Payload),
		call: f.Call, made: time.UnixMilli(f.Made), tried: max(f.Steps, f.Tried), attempts: f.Attempts,
	}
	d.version = r.Version
	wait := min(max(0, time.UnixMilli(f.Due).Sub(w.Now())), maxWait)
	d.progress = webhook.Progress{
		State: webhook.StatePending, Attempts: f.Steps, Due: time.Now().Add(wait),
	}
	if f.NotAfter > 0 {
		d.progress.NotAfter = w.ours(time.UnixMilli(f.NotAfter))
	}
	if d.call != nil {
		d.call.Tenant = r.Tenant
	}
	if d.payload = f.Payload; f.MissedAfter != "" {
		d.missed, d.because = f.missed(), f.Because
	}
	w.targets.add(d)
	switch {
	case f.Steps == 0 && f.MissedAfter == "":
		d.late, d.names = true, f.namesIn()
		w.late = append(w.late, d)
	default:
		w.schedule(d, d.progress.Due)
	}
}

// startLate makes first attempts that the owner before has left, of events up to one. Those of later
// events wait for what is read of the events before them: some of that may not be in the store.
func (w *dispatch) startLate(upTo lock.EventID) {
	for len(w.late) > 0 && w.late[0].event().Compare(upTo) <= 0 {
		d := w.late[0]
		w.late = w.late[1:]
		if d.late = false; !d.over {
			d.target.queue(d, d.names)
			w.attempt(d)
		}
	}
}

// unreadable replaces a record that cannot be read. A subscription gets events.missed; a callback is
// derived again from its entry.
func (w *dispatch) unreadable(t *target, r store.Record) {
	_, id, _ := strings.Cut(r.ID, ":")
	d := &delivery{cell: t.cell(r.RecordKey), target: t, over: true, untold: true}
	d.version = r.Version
	it := &item{read: time.Now(), open: 1, done: func() { d.untold = false; w.erase(d) }}
	gap := events.Missed{After: lock.EventID{}, Before: w.cursor.at}
	if event, err := lock.ParseEventID(id); err == nil {
		gap = gapAt(event)
	}
	if t.id != Callbacks && gap.After.Compare(gap.Before) < 0 {
		w.note(t, gap, api.MissedUnreadable, it)
	}
	w.recall = w.recall || t.id == Callbacks
	it.settle()
}
