package outbox

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// targetOf is the id of whose delivery a record is.
func targetOf(r store.Record) string {
	id, _, _ := strings.Cut(r.ID, ":")
	return id
}

// readOwed reads a delivery that was kept.
func readOwed(r store.Record) (*owedForm, error) {
	var f owedForm
	err := json.Unmarshal(r.Value, &f)
	switch {
	case err != nil:
		return nil, err
	case f.ID == "" || f.Tried < 0 || f.Beside < 0:
		return nil, errors.New("nobody can have written it")
	case targetOf(r) == Callbacks && f.Call == nil:
		return nil, errors.New("it does not say where it goes")
	}
	return &f, nil
}

// unreadable has a subscription told that it misses what a record tells that cannot be read, and the
// record taken away: it would be in the way of what has its name.
func (w *owner) unreadable(r store.Record) {
	t := w.target(r.Tenant, targetOf(r))
	if t.pending[r.ID] != nil || t.leaving[r.ID] != nil {
		return // this is another attempt to begin
	}
	d := &delivery{target: t, record: r.ID, stored: stored{version: r.Version}}
	if d.tellsMissed() {
		w.missesAll(d)
		return
	}
	d.over = true
	t.leaving[r.ID] = d
	_, id, _ := strings.Cut(r.ID, ":")
	event, bad := lock.ParseEventID(id)
	if t.id == Callbacks || bad != nil { // there is nobody to tell, or nothing that happened
		w.erase(d)
		return
	}
	it := &item{read: time.Now(), done: func() { w.erase(d) }}
	w.note(t, gapAt(event), api.MissedUnreadable, it)
}

// missesAll has a target told that it may miss everything up to where the shard is: what it was to be
// told of that cannot be read.
func (w *owner) missesAll(d *delivery) {
	d.kind, d.made = api.EventsMissed, w.Now()
	d.missed.After = lock.Before(d.target.From + 1)
	d.missed.Before = d.missed.After.Later(w.cursor.at)
	d.id, d.because = missedID(d.missed), api.MissedUnreadable
	d.payload = marshal(missedEvent(d.target.tenant, &lost{Missed: d.missed, because: d.because}, d.made))
	d.size = len(d.payload)
	d.progress = beginOf(d, time.Now())
	w.add(d)
	w.keep(d)
	w.schedule(d, time.Now())
}
