package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// delivery is one event that one target is to be told.
type delivery struct {
	heap.Place // in the queue of those that are due

	target *target
	id     string // of the message, the same with every attempt
	record string // the id of its record in the store
	kind   string // of the event
	lock   string // its first lock, for people

	payload []byte        // nil while it is in the store only
	size    int           // of the payload, in bytes
	grant   *callbackCall // of a callback; nil otherwise

	progress webhook.Progress
	made     time.Time // when it was first to be sent
	attempts []attempt
	asked    bool // somebody asked for the next attempt
	beside   int  // attempts that were made and of which the schedule knows nothing

	// A first attempt waits for those before it that are about the same lock.
	first    bool // it is still to be made
	waitsFor int
	blocks   []*delivery
	names    []string

	missed  events.Missed // of what tells that something is missed
	because string

	items   []*item // that it keeps from being settled
	running bool    // an attempt, or it waits for the pool
	due     time.Time

	stored       // of its record
	unsure  bool // the last write of it failed, and was executed perhaps
	writing bool
	queued  bool // it waits to be written
	turn    bool // it has waited
	owed    bool // it is neither made nor kept
	later   bool // it is written in a moment
	stale   bool // it has changed since it was last written, or is over
	over    bool
	untold  bool // it is over, and stays in the store until it is kept that it is missed
}

// attempt is what is remembered of one.
type attempt struct {
	At      time.Time       `json:"at"`
	Outcome webhook.Outcome `json:"outcome"`
	Status  int             `json:"status,omitempty"`
	Err     string          `json:"error,omitempty"`
	TookMS  int64           `json:"took_ms"`
	SkewS   int64           `json:"skew_s,omitempty"`
	RetryS  int64           `json:"retry_s,omitempty"` // after how long the receiver wants the next one
}

// maxAttempts bounds what is remembered of a delivery's attempts: the last ones.
const maxAttempts = 5

func (d *delivery) note(r webhook.Result, at time.Time) {
	d.attempts = append(d.attempts, attempt{
		At: at, Outcome: r.Outcome, Status: r.Status, Err: r.Err,
		TookMS: r.Took.Milliseconds(), SkewS: int64(r.DateSkew.Seconds()), RetryS: int64(r.RetryAfter.Seconds()),
	})
	d.attempts = d.attempts[max(0, len(d.attempts)-maxAttempts):]
}

// start has the delivery wait for its turn, or makes its first attempt.
func (w *owner) start(d *delivery) {
	if d.waitsFor == 0 {
		w.attempt(d)
	}
}

// attempt has an attempt made as soon as the pool has room.
func (w *owner) attempt(d *delivery) {
	if d.over || d.running {
		return
	}
	t := d.target
	switch {
	case w.Now().Sub(d.made) > maxAge && !d.tellsMissed():
		d.progress.State = webhook.StateFailed
		w.pass(d)
		t.remember(d)
		w.giveUp(d)
		return
	case d.tooLate(time.Now()):
		d.progress.State = webhook.StateExpired
		w.pass(d)
		t.remember(d)
		w.end(d)
		return
	case !t.sends():
		w.schedule(d, time.Now().Add(pausedLook))
		return
	}
	to, asked := t.receiverOf(d), d.asked
	if until := to.until(time.Now()); !until.IsZero() && !asked {
		if d.tooLate(until) { // it ends when it is, and not when its receiver wants something again
			until = d.progress.NotAfter
		}
		w.schedule(d, until)
		return
	}
	d.running = true
	err := w.pool.Submit(w.job(d, to))
	if err != nil {
		d.running = false
		w.schedule(d, time.Now().Add(retryPause))
	}
}

// job is the next attempt, for the pool. Which it was told would attempt nothing attempts nothing, although that may have
// changed since: the pool has not counted it.
func (w *owner) job(d *delivery, to *receiver) webhook.Job {
	t, asked, idle := d.target, d.asked, false
	message := webhook.Message{ID: d.id, Payload: d.payload, NotAfter: d.progress.NotAfter}
	moot := func() bool { return w.isGone() || !asked && !to.until(time.Now()).IsZero() }
	return webhook.Job{
		Tenant: t.tenant, Target: t.poolName(d), Order: d.record, Bytes: d.size + 512,
		Run: func(ctx context.Context) {
			made := tried{at: w.Now(), id: message.ID}
			where, ok := t.address(d)
			if made.sub = where.sub; ok && !idle && !moot() {
				made.Result = w.send(ctx, d, to, where, message)
			} else {
				made.Outcome = webhook.Interrupted // it has waited for its turn, and is not to be made now
			}
			w.bring(func() { w.attempted(d, made) })
		},
		Void: func() bool {
			_, ok := t.address(d)
			idle = !ok || moot()
			return idle || message.Expired(time.Now())
		},
	}
}

// tooLate reports whether a delivery is of no use any more at an instant of this process's clock.
func (d *delivery) tooLate(at time.Time) bool {
	return !d.progress.NotAfter.IsZero() && !at.Before(d.progress.NotAfter)
}

// send makes an attempt. It runs in the pool, and uses of the delivery what never changes.
func (w *owner) send(ctx context.Context, d *delivery, r *receiver, to address, m webhook.Message) webhook.Result {
	if c := d.grant; c != nil && c.Held && w.Locks.Gone(c.Entry, c.Number) {
		return webhook.Result{Outcome: webhook.Expired, Err: "not sent: the entry has ended"}
	}
	if m.Payload == nil {
		var err error
		if m.Payload, err = w.load(ctx, d); err != nil {
			return webhook.Result{Outcome: webhook.Interrupted, Cause: err}
		}
	}
	if d.grant != nil {
		m.Payload = d.grant.complete(m.Payload, w.Locks)
	}
	target := webhook.Target{URL: to.url, Secrets: to.secrets(w.Now())}
	if len(target.Secrets) == 0 {
		return webhook.Result{Outcome: webhook.Rejected, Err: "there is no secret to sign it with", Cause: errNoSecret}
	}
	return r.ask(func() webhook.Result { return w.Sender.Send(ctx, target, m) })
}

// errNoSecret: this replica knows of no secret that signs.
var errNoSecret = errors.New("there is no secret")

// tried is an attempt that was made, or could not be.
type tried struct {
	webhook.Result
	at  time.Time
	id  string                     // of the message that was sent
	sub *subscription.Subscription // as it was then; nil for a callback
}

// attempted takes what came of an attempt.
func (w *owner) attempted(d *delivery, r tried) {
	d.running = false
	if r.Outcome != webhook.Interrupted {
		w.Metrics.WebhookAttempted(w.ctx, string(r.Outcome), r.Took)
	}
	if d.over {
		return // it was withdrawn meanwhile
	}
	if r.Cause != nil {
		w.Logger.Debug("a webhook was not delivered", "tenant", d.target.tenant, "webhook", d.target.id, "id", d.id, "outcome", string(r.Outcome), "error", r.Cause)
	}
	if d.grant != nil && errors.Is(r.Cause, errNoSecret) && w.Now().Sub(d.made) < secretTime {
		w.schedule(d, time.Now().Add(tick)) // which is no attempt
		return
	}
	if r.Outcome == webhook.Interrupted {
		w.schedule(d, time.Now().Add(retryPause))
		return
	}
	if r.Outcome == webhook.Gone && d.target.isOther(r.sub) {
		d.note(r.Result, r.at)
		d.beside++ // who has that URL wants nothing, and is asked no more
		w.schedule(d, time.Now())
		return
	}
	w.pass(d)
	d.note(r.Result, r.at)
	if !d.target.isOther(r.sub) {
		d.target.noteReceiver(d, &r.Result)
	}
	w.proceed(d, r)
	w.noteHealth(d.target, r)
	d.target.remember(d)
	w.cursor.behind = true
	if r.Outcome == webhook.Delivered && !d.tellsMissed() {
		w.answers(d.target)
	}
	switch d.progress.State {
	case webhook.StatePending:
	case webhook.StateFailed, webhook.StateGone:
		w.giveUp(d)
		return
	case webhook.StateDelivered, webhook.StateExpired:
		w.end(d)
		return
	}
	w.schedule(d, d.progress.Due)
	w.keep(d)
}

// proceed says what follows from an attempt.
func (w *owner) proceed(d *delivery, r tried) {
	now := time.Now()
	if d.asked && now.Before(d.progress.Due) {
		was := d.progress.Attempts
		if d.progress = d.progress.AfterAsked(r.Result, now); d.progress.Attempts == was && r.Outcome != webhook.Expired {
			d.beside++ // it took no step
		}
	} else {
		d.progress = w.after(d, r.Result, now)
	}
	d.asked = false
	switch {
	case r.Outcome == webhook.Delivered && d.id != r.id: // more is missed than was told
		w.renew(d)
	case d.progress.State == webhook.StateGone && d.tellsMissed(): // it waits for whoever sets the receiver going
		w.renew(d)
	}
}

// after is where the schedule stands after an attempt. It begins anew with the last one of what
// tells that something is missed: that is never given up as long as the subscription is there, as
// nobody would tell of it, and waits where the receiver was disabled meanwhile.
func (w *owner) after(d *delivery, r webhook.Result, now time.Time) webhook.Progress {
	next := d.progress.After(r, now, w.Rand())
	if next.State == webhook.StateFailed && d.tellsMissed() {
		w.renew(d)
		return d.progress.After(r, now, w.Rand())
	}
	return next
}

// renew begins the schedule anew.
func (w *owner) renew(d *delivery) {
	d.beside += d.progress.Attempts
	d.progress = beginOf(d, time.Now())
}

// pass lets those have their first attempts that waited for this one's.
func (w *owner) pass(d *delivery) {
	if !d.first {
		return
	}
	d.first = false
	for _, name := range d.names {
		if d.target.tails[name] == d {
			delete(d.target.tails, name)
		}
	}
	blocks := d.blocks
	d.blocks, d.names = nil, nil
	for _, next := range blocks {
		if next.waitsFor--; next.waitsFor == 0 {
			w.attempt(next)
		}
	}
}

// queue puts a delivery behind those that are about the same locks.
func (t *target) queue(d *delivery, names []string) {
	d.first, d.names = true, names
	for _, name := range names {
		if before := t.tails[name]; before != nil && before != d {
			before.blocks = append(before.blocks, d)
			d.waitsFor++
		}
		t.tails[name] = d
	}
}

// end settles a delivery of which nothing follows any more, and forgets it.
func (w *owner) end(d *delivery) {
	d.over = true
	w.needsNoTurn(d)
	w.due.remove(d)
	w.settle(d)
	w.targets.drop(d)
	if d.version > 0 || d.writing || d.unsure {
		d.target.leaving[d.record] = d
		w.erase(d)
	}
}

// giveUp ends a delivery that the receiver did not get: it is told that it misses the event, unless
// nothing happened for it, or it is a caller's, who sees it in the list.
func (w *owner) giveUp(d *delivery) {
	event := d.event()
	if d.grant != nil || event == (lock.EventID{}) {
		w.end(d)
		return
	}
	d.over, d.untold = true, true
	w.needsNoTurn(d)
	w.due.remove(d)
	w.targets.drop(d)
	d.target.leaving[d.record] = d
	it := &item{read: time.Now(), done: func() {
		d.untold = false
		w.settle(d)
		w.erase(d)
	}}
	w.note(d.target, gapAt(event), api.MissedUndelivered, it)
}

func (w *owner) settle(d *delivery) {
	w.owesNoMore(d)
	for _, it := range d.items {
		it.settle()
	}
	d.items = nil
}
