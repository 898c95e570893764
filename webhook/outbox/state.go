package outbox

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// state is the health of a target and its last deliveries. It is written every few seconds, so after
// a kill it is that old.
type state struct {
	From    uint64         `json:"from"`    // of the subscription: a fence floor raises that later
	Taken   uint64         `json:"taken"`   // the version of the subscription up to which it caught up
	Enabled int            `json:"enabled"` // of the subscription that Health is about
	Health  webhook.Health `json:"health"`
	Recent  []*Delivery    `json:"recent,omitempty"` // the newest last
	stamp
}

// readState reads as much of a state as can be read.
func readState(r store.Record) (s state, err error) {
	err = json.Unmarshal(r.Value, &s)
	s.Recent = slices.DeleteFunc(s.Recent, func(row *Delivery) bool { return row == nil })
	return s, err
}

func (s *state) health() Health {
	return Health{s.Health.FailingSince, s.Health.Failures, s.Health.Disabled, s.Enabled}
}

func (s *state) encode(by stamp) []byte {
	s.stamp = by
	value := store.Encode(s)
	for len(value) > store.MaxRecordValue && len(s.Recent) > 0 {
		s.Recent = s.Recent[(len(s.Recent)+1)/2:]
		value = store.Encode(s)
	}
	return value
}

// remember notes a delivery that has ended.
func (t *target) remember(d *delivery) {
	t.Recent = slices.DeleteFunc(t.Recent, func(r *Delivery) bool { return r.ID == d.id })
	t.Recent = append(t.Recent, &Delivery{
		ID: d.id, Type: d.kind, Lock: d.lock, State: d.progress.State, Made: d.made.UTC(),
		Tried: d.tried, Attempts: d.attempts,
	})
	t.Recent = t.Recent[max(0, len(t.Recent)-maxRecent):]
	t.dirty = true
}

// loadStates reads the states of all targets.
func (w *owner) loadStates() error {
	return w.ledger.each(w.ctx, stateKind(w.name), func(r store.Record) {
		s, err := readState(r)
		if err != nil {
			w.Logger.Error("the state of a webhook cannot be read", "tenant", r.Tenant, "webhook", r.ID, "error", err)
		}
		t := w.targets.of(r.Tenant, r.ID)
		t.state, t.stateCell = s, cell{key: r.RecordKey, version: r.Version}
	})
}

// writeStates writes some of the states that have changed, the oldest first.
func (w *owner) writeStates(now time.Time, most int, since time.Duration) {
	if !w.lease.holds() {
		return
	}
	var due []*target
	for _, t := range w.targets.all {
		if t.dirty && !t.stateCell.busy && now.Sub(t.written) >= since {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *target) int { return a.written.Compare(b.written) })
	for _, t := range due[:min(len(due), most)] {
		t.dirty, t.written = false, now
		t.stateCell.key = store.RecordKey{Kind: stateKind(w.name), Tenant: t.tenant, ID: t.id}
		w.ledger.save(&t.stateCell, t.encode, func(err error) {
			if t.dirty = t.dirty || err != nil; t.gone {
				w.eraseState(t)
			}
		})
	}
}

// eraseState deletes the state of a subscription that was deleted.
func (w *owner) eraseState(t *target) {
	if t.dirty, t.gone = false, true; !t.stateCell.busy {
		w.ledger.erase(&t.stateCell, func() {})
	}
}
