package outbox

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// delivery is one event for one target.
type delivery struct {
	heap.Place // in the queue of those that are due
	*cell      // its record, which is written if it is not delivered at once

	target *target
	id     string // of the message, the same with every attempt
	kind   string // of the event
	lock   string // its first lock, for people

	payload []byte        // without a token
	size    int           // of it, in bytes
	call    *callbackCall // of a callback; nil otherwise

	progress webhook.Progress
	made     time.Time // of the delivery, by the wall clock
	tried    int       // attempts
	attempts []Attempt // the last of them
	asked    bool      // somebody asked for the next attempt

	// A first attempt waits for those before it about the same locks.
	first    bool // it is still to be made
	late     bool // the owner before left it, and events before it are still to be read
	waitsFor int
	blocks   []*delivery
	names    []string

	missed  events.Missed // of an events.missed
	because string

	items   []*item // that wait for it
	running bool    // it is attempted, or in the pool
	due     time.Time
	stale   bool // it has changed since it was written
	over    bool
	untold  bool // it is over, and its record stays until it is written that it is missed
}

// tried is the outcome of an attempt.
type tried struct {
	webhook.Result
	at  time.Time
	id  string                     // of the message that was sent
	sub *subscription.Subscription // as it was then; nil of a callback
}

// errNoSecret: this replica knows no secret that signs.
var errNoSecret = errors.New("there is no secret")

// Before implements [heap.Element].
func (d *delivery) Before(other *delivery) bool { return d.due.Before(other.due) }

func (d *delivery) tellsMissed() bool { return d.missed != (events.Missed{}) }

// event returns the id of the event; zero of a test, a callback or an events.missed.
func (d *delivery) event() lock.EventID {
	id, err := lock.ParseEventID(d.id)
	if err != nil || d.call != nil {
		return lock.EventID{}
	}
	return id
}

// begin starts the schedule. It goes by this process's clock, which does not jump.
func (d *delivery) begin(now time.Time) {
	var notAfter time.Time
	if d.call != nil && d.call.Held {
		notAfter = d.call.lasts
	}
	d.progress = webhook.Begin(now, notAfter)
}

// tooLate reports whether a delivery is useless at an instant of this process's clock.
func (d *delivery) tooLate(at time.Time) bool {
	return !d.progress.NotAfter.IsZero() && !at.Before(d.progress.NotAfter)
}

// note keeps the outcome of an attempt.
func (d *delivery) note(r *tried) {
	d.tried++
	d.attempts = append(d.attempts, Attempt{
		At: r.at, Outcome: r.Outcome, Status: r.Status, Err: r.Err, TookMS: r.Took.Milliseconds(),
		SkewS: int64(r.DateSkew.Seconds()), RetryS: int64(r.RetryAfter.Seconds()),
	})
	d.attempts = d.attempts[max(0, len(d.attempts)-maxAttempts):]
}

// proceed takes the next step of the schedule. An attempt that was asked for takes none: a client
// that asks again and again would use the schedule up.
func (d *delivery) proceed(r *tried, now time.Time, random float64) {
	asked := d.asked && now.Before(d.progress.Due)
	if d.asked = false; asked {
		d.progress = d.progress.AfterAsked(r.Result, now)
	} else {
		d.progress = d.progress.After(r.Result, now, random)
	}
	if ended := d.progress.State; d.tellsMissed() && d.unending(r) {
		if d.begin(now); ended == webhook.StateFailed {
			d.progress = d.progress.After(r.Result, now, random)
		}
	}
}

// unending reports whether an events.missed begins its schedule again. It is never given up while
// there is the subscription, and more may be missed than the attempt said.
func (d *delivery) unending(r *tried) bool {
	switch d.progress.State {
	case webhook.StateDelivered:
		return d.id != r.id
	case webhook.StateFailed, webhook.StateGone, webhook.StateExpired:
		return true
	case webhook.StatePending:
	}
	return false
}

// settle has nothing wait for the delivery any more.
func (d *delivery) settle() {
	for _, it := range d.items {
		it.settle()
	}
	d.items = nil
}

// job is the next attempt, for the pool. It uses of the delivery what never changes.
func (w *dispatch) job(d *delivery) webhook.Job {
	t, asked, name := d.target, d.asked, d.target.poolName(d)
	m := webhook.Message{ID: d.id, Payload: d.payload, NotAfter: d.progress.NotAfter}
	void := func() bool { return w.isGone() || !asked && t.quiet.of(name).After(time.Now()) }
	return webhook.Job{
		Tenant: t.tenant, Target: name, Order: d.key.ID, Bytes: d.size + 512,
		Run: func(ctx context.Context) {
			r := tried{at: w.Now(), id: m.ID}
			to, ok := t.address(d)
			if r.sub = to.sub; !ok || void() {
				r.Outcome = webhook.Interrupted // something changed while it was in the pool
			} else {
				r.Result = w.send(ctx, d, to, m)
			}
			w.bring(func() { w.attempted(d, &r) })
		},
		Void: func() bool {
			_, ok := t.address(d)
			return !ok || void() || m.Expired(time.Now())
		},
	}
}

// send makes an attempt.
func (w *dispatch) send(ctx context.Context, d *delivery, to address, m webhook.Message) webhook.Result {
	if c := d.call; c != nil {
		if c.Held && w.Locks.Gone(c.Entry, c.Number) {
			return webhook.Result{Outcome: webhook.Expired, Err: "not sent: the entry has ended"}
		}
		m.Payload = c.complete(m.Payload, w.Locks)
	}
	secrets := to.secrets(w.Now())
	if len(secrets) == 0 {
		return webhook.Result{Outcome: webhook.Rejected, Err: "there is no secret to sign it with", Cause: errNoSecret}
	}
	return w.Sender.Send(ctx, webhook.Target{URL: to.url, Secrets: secrets}, m)
}

// quiet says until when receivers want no attempts, by their names in the pool. It is for any
// goroutine.
type quiet struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// hush has a receiver that answered with Retry-After left alone for so long, with all that goes to it.
// Of more than maxOfTarget receivers only the delivery itself waits.
func (q *quiet) hush(name string, is *webhook.Result, now time.Time) {
	if is.Outcome != webhook.Throttled || is.RetryAfter <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.until, func(_ string, until time.Time) bool { return !until.After(now) })
	if q.until == nil {
		q.until = map[string]time.Time{}
	}
	was, known := q.until[name]
	if until := now.Add(min(is.RetryAfter, maxQuiet)); until.After(was) && (known || len(q.until) < maxOfTarget) {
		q.until[name] = until
	}
}

func (q *quiet) of(name string) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.until[name]
}

// clear forgets what the target's former receiver wanted.
func (q *quiet) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = nil
}
