package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// recordName is the id of the record of a target's delivery.
func recordName(target, id string) string { return target + ":" + id }

// owedForm is a delivery as it is kept.
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
	Tried       int             `json:"attempts_made"` // steps of the schedule
	Beside      int             `json:"attempts_beside,omitempty"`
	Attempts    []attempt       `json:"attempts,omitempty"`
	Asked       bool            `json:"asked,omitempty"` // somebody asked for the next one now
	stamp
}

// wall is an instant of this process's clock by the wall clock as it is now.
func (w *owner) wall(at time.Time) time.Time { return w.Now().Add(time.Until(at)) }

// ours is an instant of the wall clock, as it is now, by this process's clock.
func (w *owner) ours(at time.Time) time.Time { return time.Now().Add(at.Sub(w.Now())) }

func (w *owner) encode(d *delivery, by stamp) []byte {
	f := owedForm{
		stamp: by,
		ID:    d.id, Kind: d.kind, Lock: d.lock, Payload: d.payload, Call: d.grant,
		Made: d.made.UnixMilli(), Due: w.wall(d.progress.Due).UnixMilli(), Tried: d.progress.Attempts, Beside: d.beside, Attempts: d.attempts, Asked: d.asked,
	}
	if !d.progress.NotAfter.IsZero() {
		f.NotAfter = w.wall(d.progress.NotAfter).UnixMilli()
	}
	if d.tellsMissed() {
		f.MissedAfter, f.Because = d.missed.After.String(), d.because
	}
	return store.Encode(f)
}

func (w *owner) key(d *delivery) store.RecordKey {
	return store.RecordKey{Kind: owedKind(w.name), Tenant: d.target.tenant, ID: d.record}
}

// keep has a delivery written as it is now; then it is settled.
func (w *owner) keep(d *delivery) {
	d.stale = true
	if d.writing || d.over || d.target.leaving[d.record] != nil {
		return // when that is over
	}
	if d.version == 0 && !w.lease.holds() {
		w.keepLater(d)
		return
	}
	if !w.hasTurn(d) {
		return
	}
	if d.payload == nil { // it is in the store only, with what else is written there
		d.turn = true
		w.reload(d)
		return
	}
	d.writing, d.stale, d.turn = true, false, false
	by := w.stamp()
	value, was := w.encode(d, by), d.stored
	w.writes.do(func(ctx context.Context) func() {
		now, err := w.put(ctx, w.key(d), value, by, was)
		return func() { w.keptOne(d, now, err) }
	})
}

func (w *owner) keptOne(d *delivery, is stored, err error) {
	d.writing, d.unsure = false, err != nil
	switch {
	case err == nil:
		if d.version == 0 {
			w.bill.add(d.target.tenant, Cost{Kept: 1})
		}
		d.stored = is
		w.cursor.behind = true
	case errors.Is(err, lock.Changed), errors.Is(err, lock.NotFound):
		w.lostShard()
		return
	default:
		w.Logger.Debug("a delivery could not be kept, and is tried again", "shard", w.name, "error", err)
		d.stale = true
	}
	switch {
	case d.over:
		w.erase(d)
	case d.stale && err != nil:
		w.keepLater(d)
	case d.stale:
		w.keep(d)
	default:
		w.settle(d)
		if !d.running && !d.first && time.Until(d.due) > payloadTime {
			d.payload = nil
		}
	}
}

// keepLater has a delivery written in a moment, when it has another turn: those of a long outage together would be a burst.
func (w *owner) keepLater(d *delivery) {
	d.turn = false
	if d.later {
		return
	}
	d.later = true
	time.AfterFunc(retryPause, func() {
		w.bring(func() {
			d.later = false
			w.keep(d)
		})
	})
}

// reload reads a payload again that is to be written anew.
func (w *owner) reload(d *delivery) {
	d.writing = true
	w.writes.do(func(ctx context.Context) func() {
		payload, err := w.load(ctx, d)
		return func() {
			d.writing = false
			switch {
			case d.over: // and left this record to be erased
				w.erase(d)
			case d.payload != nil: // more is missed, and what is read tells of less
				w.keep(d)
			case err != nil:
				w.keepLater(d)
			default:
				d.payload = payload
				w.keep(d)
			}
		}
	})
}

// load reads the payload of a delivery that is kept.
func (w *owner) load(ctx context.Context, d *delivery) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	record, err := w.Records.Get(ctx, w.key(d))
	if errors.Is(err, lock.NotFound) {
		w.bring(func() { w.vanished(d) })
	}
	if err != nil {
		return nil, err
	}
	f, err := readOwed(record)
	if err != nil {
		w.bring(func() { w.vanished(d) }) // who loads it counts it as missed
		return nil, err
	}
	return f.Payload, nil
}

// vanished: somebody else has taken a delivery's record away, or damaged it.
func (w *owner) vanished(d *delivery) {
	if !d.over && d.version > 0 {
		w.lostShard()
	}
}

// erase takes a delivery's record away that is over.
func (w *owner) erase(d *delivery) {
	if d.writing || d.untold {
		return // when that is over
	}
	if d.version == 0 {
		w.eraseIfKept(d)
		return
	}
	d.writing = true
	version := d.version
	w.writes.do(func(ctx context.Context) func() {
		err := w.Records.Delete(ctx, w.key(d), version)
		return func() {
			d.writing = false
			switch {
			case err == nil, errors.Is(err, lock.NotFound):
				w.hasLeft(d)
			case errors.Is(err, lock.Changed): // perhaps by what seemed to fail
				w.eraseIfKept(d)
			default:
				time.AfterFunc(retryPause, func() { w.bring(func() { w.erase(d) }) })
			}
		}
	})
}

// eraseIfKept takes the record of a delivery away that is over, if this owner wrote it after what is known
// of it: what wrote it failed, but may have been executed.
func (w *owner) eraseIfKept(d *delivery) {
	d.writing = true
	w.writes.do(func(ctx context.Context) func() {
		is, err := w.Records.Get(ctx, w.key(d))
		return func() {
			d.writing = false
			switch {
			case err == nil && w.wroteSince(d.stored, is):
				d.version = is.Version
				w.erase(d)
			case err == nil && d.version > 0:
				w.lostShard()
			case err == nil, errors.Is(err, lock.NotFound): // or it is not this one's
				w.hasLeft(d)
			default:
				time.AfterFunc(retryPause, func() { w.bring(func() { w.eraseIfKept(d) }) })
			}
		}
	})
}

// hasLeft lets a delivery be kept that has the record's name now: what was told is told again.
func (w *owner) hasLeft(d *delivery) {
	t := d.target
	if t.leaving[d.record] == d {
		delete(t.leaving, d.record)
	}
	if next := t.pending[d.record]; next != nil && next.stale {
		w.keep(next)
	}
}

// loadOwed takes up what the owner before has left to be tried again.
func (w *owner) loadOwed() error {
	err := w.all(owedKind(w.name), func(r store.Record) {
		f, err := readOwed(r)
		if err != nil {
			w.Logger.Error("a delivery that was kept cannot be read, and counts as missed", "tenant", r.Tenant, "record", r.ID, "error", err)
			w.unreadable(r)
			return
		}
		w.adopt(w.target(r.Tenant, targetOf(r)), r, f)
	})
	slices.SortStableFunc(w.late, byEvent)
	return err
}

func byEvent(a, b *delivery) int { return a.event().Compare(b.event()) }

// startLate has first attempts made that the owner before has left, in the order of their events, of what
// happened up to an event. What happened later is to be read again, and comes behind what was not kept of
// that: several are written at once, and the one before may have been stopped in between. So it is of a
// target that is given nothing for now, of what it was not given.
func (w *owner) startLate(upTo lock.EventID) {
	w.startSome(upTo, func(d *delivery) bool { return !w.parking.holds(d) })
}

// startLateOf does so of one target, that is given what happens up to an event.
func (w *owner) startLateOf(t *target, upTo lock.EventID) {
	w.startSome(upTo, func(d *delivery) bool { return d.target == t })
}

func (w *owner) startSome(upTo lock.EventID, which func(*delivery) bool) {
	var stay []*delivery
	end := 0
	for ; end < len(w.late) && w.late[end].event().Compare(upTo) <= 0; end++ {
		switch d := w.late[end]; {
		case d.over:
		case which(d):
			w.startOne(d)
		default:
			stay = append(stay, d)
		}
	}
	w.late = w.late[end-len(stay):]
	copy(w.late, stay)
}

// startOne has a first attempt made that the owner before has left, behind those about the same locks.
func (w *owner) startOne(d *delivery) {
	names := d.names
	if d.target.queue(d, names); d.waitsFor == 0 {
		w.schedule(d, time.Now())
	}
}

// event is the id of what a delivery tells; zero if nothing happened for it.
func (d *delivery) event() lock.EventID {
	id, err := lock.ParseEventID(d.id)
	if err != nil {
		return lock.EventID{}
	}
	return id
}

// namesIn are what a kept delivery keeps an order with: its locks, or its entry.
func (f *owedForm) namesIn() []string {
	if f.Call != nil {
		return []string{string(f.Call.Entry)}
	}
	var e api.Event
	if json.Unmarshal(f.Payload, &e) != nil {
		return nil
	}
	if e.Data.Lock != "" {
		return []string{e.Data.Lock}
	}
	return e.Data.Locks
}

// missed is what a kept delivery tells that it is missed. The id named its later end alone once.
func (f *owedForm) missed() events.Missed {
	m, ok := gapOf(f.ID)
	if !ok {
		m.After, _ = lock.ParseEventID(f.MissedAfter)
		m.Before, _ = lock.ParseEventID(f.ID)
	}
	return m
}

func (w *owner) adopt(t *target, r store.Record, f *owedForm) {
	if t.pending[r.ID] != nil {
		return // this is another attempt to begin
	}
	d := &delivery{
		target: t, id: f.ID, record: r.ID, kind: f.Kind, lock: f.Lock, size: len(f.Payload), grant: f.Call,
		made: time.UnixMilli(f.Made), attempts: f.Attempts, beside: f.Beside, stored: stored{version: r.Version},
	}
	wait := min(max(0, time.UnixMilli(f.Due).Sub(w.Now())), maxWait) // whatever the clock of who wrote it was
	d.progress = webhook.Progress{State: webhook.StatePending, Attempts: f.Tried, Due: time.Now().Add(wait)}
	if f.NotAfter > 0 {
		d.progress.NotAfter = w.ours(time.UnixMilli(f.NotAfter))
	}
	if d.grant != nil {
		d.grant.Tenant = r.Tenant
	}
	if f.MissedAfter != "" {
		d.missed, d.because = f.missed(), f.Because
		d.payload = f.Payload // it may be written anew at once
	}
	w.add(d)
	if f.Tried == 0 && f.MissedAfter == "" {
		d.first, d.names = true, f.namesIn()
		w.late = append(w.late, d)
		return
	}
	due := d.progress.Due
	if d.asked = f.Asked; d.asked {
		due = time.Now()
	}
	w.schedule(d, due)
}

// all reads all records of a kind.
func (w *owner) all(kind string, each func(store.Record)) error {
	q := store.RecordQuery{Kind: kind}
	for {
		ctx, cancel := context.WithTimeout(w.ctx, callTimeout)
		page, err := w.Records.List(ctx, q)
		cancel()
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			each(r)
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}
