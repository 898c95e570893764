package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// dispatch makes a shard's deliveries, and writes those that are not made at once. It belongs to
// the goroutine of its [owner].
type dispatch struct {
	*shard
	began time.Time
	lease *lease

	ctx    context.Context //nolint:containedctx // of all that it does: ends when the shard is lost
	lose   context.CancelFunc
	isLost bool // another replica has written a record

	cursor  cursor
	ledger  *ledger
	targets targets
	due     heap.Heap[*delivery] // deliveries that wait for their next attempt
	late    []*delivery          // that the owner before left without an attempt, in order
	unread  []*delivery          // of callbacks, and others without an event, that cannot be read
}

func newDispatch(s *shard, fence uint64) *dispatch {
	w := &dispatch{shard: s, began: time.Now(), lease: &lease{}, targets: newTargets()}
	w.cursor.key = store.RecordKey{Kind: cursorKind, Tenant: store.NoTenant, ID: s.name}
	w.ledger = &ledger{
		stamp: stamp{fence}, records: s.Records, lease: w.lease, lost: w.lostShard,
		brought: make(chan func(), 64),
	}
	w.ledger.ctx, w.ledger.end = context.WithCancel(context.Background())
	return w
}

// lostShard ends the work: another replica has written what only the owner writes.
func (w *dispatch) lostShard() {
	if !w.isLost {
		w.Logger.Warn("another replica sends these webhooks now", "shard", w.name)
	}
	w.isLost = true
	w.lose()
}

// accept begins with a delivery, unless it is pending already, or the target is full.
func (w *dispatch) accept(d *delivery, it *item, names []string) {
	t := d.target
	switch was := t.pending[d.key.ID]; {
	case was != nil && slices.Contains(w.unread, was):
		w.targets.drop(was)
		d.version = was.version // its record is there until this one is written or has ended
	case was != nil:
		if len(was.items) > 0 {
			it.hold(was)
		}
		return
	}
	d.size, d.Made = len(d.Payload), w.Now().UnixMilli()
	d.begin(time.Now())
	if w.targets.admit(d) {
		it.hold(d)
		t.queue(d, names)
		w.attempt(d)
		return
	}
	if id := d.event(); id.Number > 0 {
		w.note(t, gapAt(id), api.MissedForRoom, it)
		return
	}
	d.progress.State = webhook.StateFailed
	if t.remember(d); d.Call != nil {
		w.skip(t, webhook.Failed)
	}
	w.ledger.erase(&d.cell, func() {})
}

// attempt makes the next attempt, or schedules it.
func (w *dispatch) attempt(d *delivery) {
	if w.maySend(d) {
		d.running = true
		d.lane.ready = append(d.lane.ready, d)
		w.start(d.lane)
	}
}

// start begins attempts for a receiver, as many as it gets at once.
func (w *dispatch) start(l *lane) {
	for l.running < attemptsAtOnce && len(l.ready) > 0 {
		d := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		if d.running = false; w.maySend(d) {
			l.running++
			d.running, d.due = true, time.Now()
			d.waits.Store(true)
			w.pool.Submit(d.target.tenant, w.job(d))
		}
	}
}

// maySend reports whether an attempt may be made now. Otherwise it schedules or ends the delivery.
func (w *dispatch) maySend(d *delivery) bool {
	if d.over || d.running || d.held || d.waitsFor > 0 {
		return false
	}
	now, quiet := time.Now(), d.lane.quiet
	switch {
	case d.tooLate(now) && !w.lease.holds(): // it may be cut off, and does not know what holds
		w.schedule(d, now.Add(tick))
	case d.tooLate(now) && !w.prolong(d, now):
		d.progress.State = webhook.StateExpired
		w.skip(d.target, webhook.Expired)
		w.conclude(d)
	case w.age(d) > maxAge && !d.tellsMissed():
		d.progress.State = webhook.StateFailed
		w.conclude(d)
	case !d.target.sends(): // wake schedules it
	case quiet.After(now) && !d.asked:
		if d.tooLate(quiet) {
			quiet = d.progress.NotAfter // then it is over, or the entry still holds
		}
		w.schedule(d, quiet)
	default:
		return true
	}
	return false
}

// prolong has the callback of an entry that still holds be sent for another TTL. The store may have
// prolonged the lease, after an election or a restart, or the client has renewed it.
func (w *dispatch) prolong(d *delivery, now time.Time) bool {
	if d.Call == nil {
		return false
	}
	e := w.Holders.HeldCallback(d.Call.Tenant, d.Call.Entry)
	if e == nil || e.Number != d.Call.Number {
		return false
	}
	d.Call.lasts = now.Add(e.TTL)
	d.progress.NotAfter, d.progress.State = d.Call.lasts, webhook.StatePending
	return true
}

// age is how long ago a delivery was made.
func (w *dispatch) age(d *delivery) time.Duration { return w.Now().Sub(time.UnixMilli(d.Made)) }

// job is the next attempt, for the pool. It uses of the delivery what never changes.
func (w *dispatch) job(d *delivery) func(context.Context) {
	m := webhook.Message{ID: d.ID, Payload: d.Payload, NotAfter: d.progress.NotAfter}
	was := d.target.sub
	return func(ctx context.Context) {
		d.waits.Store(false)
		r := tried{at: w.Now(), id: m.ID, sub: d.target.now.Load()}
		others := d.Call == nil && (r.sub == nil || r.sub.Locks != was.Locks)
		if w.ledger.ctx.Err() != nil || others {
			r.Outcome = webhook.Interrupted // something changed while it was in the pool
		} else {
			r.Result = w.send(ctx, d, m, &r)
		}
		w.ledger.bring(func() { w.attempted(d, &r) })
	}
}

// send makes an attempt.
func (w *dispatch) send(
	ctx context.Context, d *delivery, m webhook.Message, r *tried,
) webhook.Result {
	var to webhook.Target
	if c := d.Call; c != nil {
		if c.Held && w.Holders.Gone(c.Entry, c.Number) {
			err := "not sent: the entry has ended"
			return webhook.Result{Outcome: webhook.Expired, Err: err}
		}
		m.Payload = c.complete(m.Payload, w.Entries)
		to.URL, to.Secrets = c.URL, w.Subscriptions.CallbackSecrets(c.Tenant, w.Now())
	} else {
		to.URL, to.Secrets = r.sub.URL, w.Subscriptions.Secrets(r.sub, w.Now())
	}
	if len(to.Secrets) == 0 {
		err := "there is no secret to sign it with"
		return webhook.Result{Outcome: webhook.Rejected, Err: err, Cause: errNoSecret}
	}
	return w.Sender.Send(ctx, to, m)
}

// attempted handles the outcome of an attempt.
func (w *dispatch) attempted(d *delivery, r *tried) {
	t, now := d.target, time.Now()
	d.running = false
	d.lane.running--
	defer w.start(d.lane)
	if r.Outcome == webhook.Expired && !d.over && (!w.lease.holds() || w.prolong(d, now)) {
		w.schedule(d, now.Add(tick))
		return
	}
	if r.Outcome != webhook.Interrupted {
		w.Metrics.WebhookAttempted(w.ctx, string(r.Outcome), r.Took)
	}
	switch {
	case d.over: // it was withdrawn meanwhile
		return
	case errors.Is(r.Cause, errNoSecret) && d.Call != nil && w.age(d) < secretTime:
		w.schedule(d, now.Add(tick))
		return
	case r.Outcome == webhook.Interrupted:
		w.schedule(d, now.Add(retryPause))
		return
	}
	if r.Cause != nil {
		w.Logger.Debug("a webhook was not delivered", "tenant", t.tenant, "webhook", t.id,
			"id", d.ID, "outcome", string(r.Outcome), "error", r.Cause)
	}
	d.note(r)
	other := t.isOther(r.sub)
	if other && r.Outcome == webhook.Gone {
		w.schedule(d, now) // the former receiver wants nothing; this one may
		return
	}
	d.proceed(r, now, w.Rand())
	if !other {
		w.noteHealth(d, r, now)
	}
	if r.Outcome == webhook.Delivered && !d.tellsMissed() {
		w.answers(t)
	}
	w.cursor.soon = true
	w.conclude(d)
}

// noteHealth notes what a receiver asks for and how it does. It disables one that wants nothing or
// fails for long.
func (w *dispatch) noteHealth(d *delivery, r *tried, now time.Time) {
	t := d.target
	until := now.Add(min(r.RetryAfter, maxQuiet))
	if r.Outcome == webhook.Throttled && until.After(d.lane.quiet) {
		d.lane.quiet = until
	}
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
		w.Logger.Warn("a webhook is disabled", "tenant", t.tenant, "webhook", t.id,
			"because", string(t.Health.Disabled))
	}
}

// conclude does what follows from a delivery's state.
func (w *dispatch) conclude(d *delivery) {
	w.free(d)
	if d.progress.State != webhook.StatePending {
		d.target.remember(d)
	}
	switch id := d.event(); d.progress.State {
	case webhook.StateFailed, webhook.StateGone:
		if id.Number == 0 { // the record of a callback says that it failed
			w.finish(d)
			return
		}
		w.giveUp(d, gapAt(id), api.MissedUndelivered)
	case webhook.StateDelivered, webhook.StateExpired:
		w.finish(d)
	case webhook.StatePending:
		if d.held {
			return // flushMissed writes and sends what it misses by now
		}
		w.schedule(d, d.progress.Due)
		w.keep(d)
	}
}

// free has attempts made that waited for this first one.
func (w *dispatch) free(d *delivery) {
	for _, next := range d.target.pass(d) {
		w.attempt(next)
	}
}

// keep writes a delivery as it is now; then it is settled.
func (w *dispatch) keep(d *delivery) {
	if d.stale = true; d.busy || d.over {
		return // until that call has ended
	}
	d.stale = false
	if d.tellsMissed() {
		w.renew(d)
	}
	w.ledger.save(&d.cell, w.encode(d), func() {
		switch {
		case d.ended:
			w.finish(d)
		case d.over: // until its subscription gets events.missed
		case !d.stale:
			w.cursor.soon = true
			d.settle()
		case !d.tellsMissed(): // flushMissed writes the rest
			w.keep(d)
		}
	})
}

// finish ends a delivery, deletes its record, and drops it after that.
func (w *dispatch) finish(d *delivery) {
	d.over, d.ended = true, true
	w.free(d)
	w.forgetDue(d)
	d.settle()
	if d.busy {
		return // until that call has ended
	}
	w.ledger.erase(&d.cell, func() {
		if d.ended { // otherwise more is missed meanwhile, which flushMissed writes
			w.targets.drop(d)
		}
	})
}

// keepAll writes the deliveries of an item that are not made yet.
func (w *dispatch) keepAll(it *item) {
	all := it.deliveries
	it.deliveries = nil
	for _, d := range all {
		if len(d.items) > 0 && !d.over {
			w.keep(d)
		}
	}
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

// startLate makes first attempts that the owner before has left, of events up to one. Those of
// later events wait for what is read of the events before them: some of that may not be in the
// store.
func (w *dispatch) startLate() {
	for len(w.late) > 0 && w.late[0].event().Compare(w.cursor.last) <= 0 {
		d := w.late[0]
		w.late = w.late[1:]
		if d.held = false; !d.over {
			d.target.queue(d, d.names)
			w.attempt(d)
		}
	}
}
