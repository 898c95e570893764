package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// dispatch makes a shard's deliveries, and writes those that are not made at once. It belongs to the
// goroutine of its [owner].
type dispatch struct {
	*shard
	began time.Time
	lease *lease

	ctx     context.Context //nolint:containedctx // of all that it does: ends when the shard is lost
	lose    context.CancelFunc
	isLost  bool          // another replica has written a record
	brought chan func()   // what other goroutines bring
	gone    chan struct{} // closed when nobody takes that any more

	cursor  cursor
	ledger  *ledger
	targets targets
	due     heap.Heap[*delivery] // deliveries that wait for their next attempt
	late    []*delivery          // that the owner before left without an attempt, in order
	recall  bool                 // a callback in the store could not be read
}

func newDispatch(s *shard, fence uint64) *dispatch {
	w := &dispatch{shard: s, began: time.Now(), lease: &lease{}}
	w.brought, w.gone = make(chan func(), 64), make(chan struct{})
	w.cursor.key = store.RecordKey{Kind: cursorKind, Tenant: store.NoTenant, ID: s.name}
	w.ledger = &ledger{records: s.Records, lease: w.lease, fence: fence, bring: w.bring, lost: w.lostShard}
	w.targets = targets{
		secret: s.Subscriptions, all: map[string]*target{}, byTenant: map[string][]*target{},
		load: map[string]load{},
	}
	return w
}

// bring has the owner call f. It is for other goroutines, and does nothing once the owner is gone.
func (w *dispatch) bring(f func()) {
	select {
	case w.brought <- f:
	case <-w.gone:
	}
}

func (w *dispatch) isGone() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// lostShard ends the work: another replica has written what only the owner writes.
func (w *dispatch) lostShard() {
	if !w.isLost {
		w.Logger.Warn("another replica sends these webhooks now", "shard", w.name)
	}
	w.isLost = true
	w.lose()
}

// attempt puts the next attempt into the pool, or schedules it.
func (w *dispatch) attempt(d *delivery) {
	t, now := d.target, time.Now()
	if d.over || d.running || d.late || d.waitsFor > 0 {
		return
	}
	expired := d.tooLate(now)
	old := w.Now().Sub(d.made) > maxAge && !d.tellsMissed()
	switch quiet := t.quiet.of(t.poolName(d)); {
	case expired, old:
		d.progress.State = webhook.StateFailed
		if expired {
			d.progress.State = webhook.StateExpired
		}
		w.conclude(d)
	case !t.sends(): // wake schedules it
	case quiet.After(now) && !d.asked:
		if d.tooLate(quiet) {
			quiet = d.progress.NotAfter
		}
		w.schedule(d, quiet)
	default:
		if d.running = true; w.pool.Submit(w.job(d)) != nil {
			d.running = false
			w.schedule(d, now.Add(retryPause))
		}
	}
}

// attempted handles the outcome of an attempt.
func (w *dispatch) attempted(d *delivery, r *tried) {
	t, now := d.target, time.Now()
	d.running = false
	if r.Outcome != webhook.Interrupted {
		w.Metrics.WebhookAttempted(w.ctx, string(r.Outcome), r.Took)
	}
	switch {
	case d.over: // it was withdrawn meanwhile
		return
	case errors.Is(r.Cause, errNoSecret) && d.call != nil && w.Now().Sub(d.made) < secretTime:
		w.schedule(d, now.Add(tick))
		return
	case r.Outcome == webhook.Interrupted:
		w.schedule(d, now.Add(retryPause))
		return
	}
	if r.Cause != nil {
		w.Logger.Debug("a webhook was not delivered", "tenant", t.tenant, "webhook", t.id, "id", d.id,
			"outcome", string(r.Outcome), "error", r.Cause)
	}
	d.note(r)
	other := t.isOther(r.sub)
	if other && r.Outcome == webhook.Gone {
		w.schedule(d, now) // the former receiver wants nothing; this one may
		return
	}
	d.proceed(r, now, w.Rand())
	if !other {
		t.quiet.hush(t.poolName(d), &r.Result, now)
		w.noteHealth(t, r)
	}
	if r.Outcome == webhook.Delivered && !d.tellsMissed() {
		w.answers(t)
	}
	w.cursor.soon = true
	w.conclude(d)
}

// conclude does what follows from a delivery's state.
func (w *dispatch) conclude(d *delivery) {
	for _, next := range d.target.pass(d) {
		w.attempt(next)
	}
	if d.progress.State != webhook.StatePending {
		d.target.remember(d)
	}
	switch d.progress.State {
	case webhook.StateFailed, webhook.StateGone:
		w.giveUp(d)
	case webhook.StateDelivered, webhook.StateExpired:
		w.end(d)
	case webhook.StatePending:
		w.schedule(d, d.progress.Due)
		w.keep(d)
	}
}

// end forgets a delivery of which nothing follows any more.
func (w *dispatch) end(d *delivery) {
	d.over = true
	for _, next := range d.target.pass(d) {
		w.attempt(next)
	}
	w.forgetDue(d)
	w.targets.drop(d)
	d.settle()
	w.erase(d)
}

// schedule has a delivery attempted at an instant of this process's clock.
func (w *dispatch) schedule(d *delivery, at time.Time) {
	w.forgetDue(d)
	d.due = at
	w.due.Push(d)
}

func (w *dispatch) forgetDue(d *delivery) {
	if d.Queued() {
		w.due.Remove(d)
	}
}

// hasten has an attempt made now.
func (w *dispatch) hasten(d *delivery) {
	if d.waitsFor == 0 && !d.running {
		w.forgetDue(d)
		d.asked = true
		w.attempt(d)
	}
}

// noteHealth notes how a receiver does, and disables one that wants nothing or fails for long.
func (w *dispatch) noteHealth(t *target, r *tried) {
	if r.sub == nil || t.sub == nil {
		return // each callback is one entry's
	}
	was := t.Health
	if t.sub.Enabled != t.Enabled {
		was = webhook.Health{}
	}
	t.Health, t.Enabled, t.dirty = was.After(r.Result, w.Now()), t.sub.Enabled, true
	t.allow()
	if t.Health.Disabled != webhook.NotDisabled && was.Disabled == webhook.NotDisabled {
		w.Logger.Warn("a webhook is disabled", "tenant", t.tenant, "webhook", t.id, "because", string(t.Health.Disabled))
	}
}
