package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// state is how a target does, and what it was sent last. It is written every few seconds: of
// what people are shown, that much can be lost.
type state struct {
	From    uint64         `json:"from"`    // of the subscription, as an owner first learnt of it: a fence floor that is given later raises it with all numbers
	Taken   uint64         `json:"taken"`   // the version of the subscription since which it was told all until an owner learnt of it
	Enabled int            `json:"enabled"` // of the subscription, of which Health is
	Health  webhook.Health `json:"health"`
	Recent  []*recent      `json:"recent,omitempty"` // the newest last
	stamp

	stored
	written time.Time
	writing bool
	dirty   bool
}

// recent is a delivery that was attempted not long ago.
type recent struct {
	ID       string        `json:"id"`
	Kind     string        `json:"kind"`
	Lock     string        `json:"lock,omitempty"`
	State    webhook.State `json:"state"`
	Made     time.Time     `json:"made"`
	Due      time.Time     `json:"due,omitzero"`
	Tried    int           `json:"tried"`
	Attempts []attempt     `json:"attempts"`
}

// maxRecent bounds them. With the longest of errors they come to some 50 KiB.
const maxRecent = 50

func recentOf(d *delivery) *recent {
	r := &recent{
		ID: d.id, Kind: d.kind, Lock: d.lock, State: d.progress.State, Made: d.made,
		Tried: d.progress.Attempts + d.beside, Attempts: d.attempts,
	}
	if r.State == webhook.StatePending {
		r.Due = d.progress.Due
	}
	return r
}

// remember takes note of a delivery as it is now. What was to be told of a part of what is missed
// now will never be.
func (t *target) remember(d *delivery) {
	t.Recent = slices.DeleteFunc(t.Recent, func(r *recent) bool {
		return r.ID == d.id || d.tellsMissed() && r.Kind == d.kind && r.State == webhook.StatePending
	})
	t.Recent = append(t.Recent, recentOf(d))
	t.Recent = t.Recent[max(0, len(t.Recent)-maxRecent):]
	t.dirty = true
}

func (t *target) encodeState(by stamp) []byte {
	t.stamp = by
	value := store.Encode(t.state)
	for len(value) > store.MaxRecordValue && len(t.Recent) > 0 {
		t.Recent = t.Recent[(len(t.Recent)+1)/2:]
		value = store.Encode(t.state)
	}
	return value
}

func (w *owner) stateKey(t *target) store.RecordKey {
	return store.RecordKey{Kind: stateKind(w.name), Tenant: t.tenant, ID: t.id}
}

// loadStates reads what is known of all targets.
func (w *owner) loadStates() error {
	w.targets.states = map[string]state{}
	return w.all(stateKind(w.name), func(r store.Record) {
		s, err := readState(r)
		if err != nil {
			w.Logger.Error("how a webhook does cannot be read", "tenant", r.Tenant, "webhook", r.ID, "error", err)
		}
		s.stored = stored{version: r.Version}
		w.targets.states[targetName(r.Tenant, r.ID)] = s
	})
}

// readState reads as much of a state as can be read.
func readState(r store.Record) (s state, err error) {
	err = json.Unmarshal(r.Value, &s)
	s.Recent = slices.DeleteFunc(s.Recent, func(row *recent) bool { return row == nil })
	return s, err
}

// forgetRows forgets what was to be tried again when the owner before wrote it down, and is not kept
// any more: that owner made those attempts, and was gone before it wrote what came of them.
func (w *owner) forgetRows() {
	for name, s := range w.targets.states {
		if slices.ContainsFunc(s.Recent, isPending) {
			tenant, id, _ := strings.Cut(name, "/")
			w.target(tenant, id)
		}
	}
	for _, t := range w.targets.all {
		was := len(t.Recent)
		t.Recent = slices.DeleteFunc(t.Recent, func(r *recent) bool { return isPending(r) && !t.owes(r) })
		t.dirty = t.dirty || len(t.Recent) < was
	}
}

func isPending(r *recent) bool { return r.State == webhook.StatePending }

// owes reports whether there is an attempt to come of what a row tells of.
func (t *target) owes(r *recent) bool {
	d := t.pending[recordOf(t.id, r.ID)]
	return d != nil && d.id == r.ID
}

// writeStates writes what has changed, of each target now and then, and of all no more than paces allow.
func (w *owner) writeStates(now time.Time) {
	for _, t := range w.changed(now.Add(-statePause)) {
		if w.paces.may(t.tenant, now) {
			w.paces.wrote(t.tenant, w.writeState(t), now)
		}
	}
}

// changed returns targets that have changed and were not written since: in turns of the tenants, and of a tenant those
// first that were not written for longest.
func (w *owner) changed(since time.Time) (inTurn []*target) {
	var due []*target
	for _, t := range w.targets.all {
		if t.dirty && !t.writing && !t.written.After(since) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *target) int { return a.written.Compare(b.written) })
	for _, next := range w.paces.inTurns(due) {
		inTurn = append(inTurn, next.of)
	}
	return inTurn
}

// writeLastStates writes at once as much as could be written until ctx ends at the latest, so that who has many webhooks
// holds up nobody. Of the rest the next owner finds what was written before, as of an owner that was killed.
func (w *owner) writeLastStates(ctx context.Context, now time.Time) {
	for end := now.Add(callTimeout); now.Before(end); now = now.Add(time.Second) {
		for _, t := range w.changed(now) {
			switch {
			case ctx.Err() != nil || !w.lease.holds():
				return
			case w.paces.may(t.tenant, now):
				w.paces.wrote(t.tenant, w.writeLastState(ctx, t), now)
			}
		}
	}
}

func (w *owner) writeLastState(ctx context.Context, t *target) (bytes int) {
	t.dirty = false
	by := w.stamp()
	value := t.encodeState(by)
	_, _ = w.put(ctx, w.stateKey(t), value, by, t.stored) // what the next owner finds is older
	return len(value)
}

// paces is when the states that were written are paid for, by tenant; "" is of all. What is due by then may be written
// a second before, so that a few need not wait for each other.
type paces map[string]time.Time

// turnsKept is for how long it is known that a tenant has had its turn. By then all that a server may have could.
const turnsKept = 10 * time.Minute

// turn is when a target has its turn to be written.
type turn struct {
	of *target
	at time.Time
}

// inTurns has each tenant have its turns by what it has had, and keeps the order of those of a tenant: as many as it may
// have at once.
func (p paces) inTurns(all []*target) (turns []turn) {
	had := map[string]time.Duration{}
	for _, t := range all {
		if n := had[t.tenant]; n < statesOfTenant {
			had[t.tenant]++
			turns = append(turns, turn{t, p[t.tenant].Add(n * time.Second / statesOfTenant)})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return a.at.Compare(b.at) })
	return turns
}

// may reports whether a state of a tenant may be written now.
func (p paces) may(tenant string, now time.Time) bool {
	return p[tenant].Sub(now) < time.Second && p[""].Sub(now) < time.Second
}

// wrote takes note of one that is written, and forgets what was paid for long ago.
func (p paces) wrote(tenant string, bytes int, now time.Time) {
	maps.DeleteFunc(p, func(_ string, at time.Time) bool { return now.Sub(at) > turnsKept })
	p.pays(tenant, now, max(time.Second/statesOfTenant, time.Duration(bytes)*time.Second/stateBytesOfTenant))
	p.pays("", now, max(time.Second/statesInAll, time.Duration(bytes)*time.Second/stateBytesInAll))
}

func (p paces) pays(who string, now time.Time, cost time.Duration) {
	from := p[who]
	if from.Before(now) {
		from = now
	}
	p[who] = from.Add(cost)
}

// writeState writes the state of a target, and returns how many bytes that are.
func (w *owner) writeState(t *target) int {
	t.writing, t.dirty = true, false
	by := w.stamp()
	value, was := t.encodeState(by), t.stored
	w.writes.do(func(ctx context.Context) func() {
		now, err := w.put(ctx, w.stateKey(t), value, by, was)
		return func() {
			t.writing, t.written = false, time.Now()
			switch {
			case err == nil:
				if t.stored = now; t.gone {
					w.eraseState(t)
				}
			case errors.Is(err, lock.Changed), errors.Is(err, lock.NotFound):
				w.lostShard()
			default:
				t.dirty = true
			}
		}
	})
	return len(value)
}

// eraseState takes away what is known of a target that is gone. What is left over if that
// fails is some kilobytes.
func (w *owner) eraseState(t *target) {
	t.dirty, t.gone = false, true
	if t.version == 0 || t.writing {
		return // when it was written
	}
	version := t.version
	w.writes.do(func(ctx context.Context) func() {
		err := w.Records.Delete(ctx, w.stateKey(t), version)
		return func() {
			if err != nil {
				w.Logger.Debug("the state of a webhook that is gone could not be deleted", "webhook", t.id, "error", err)
			}
		}
	})
}
