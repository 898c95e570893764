package outbox

import (
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// receiver is what is known of one that is told: a subscription's, or one URL of callbacks.
type receiver struct {
	quiet atomic.Pointer[time.Time] // until when it wants no attempts; for any goroutine
	fails bool                      // its last attempt did

	asked    atomic.Int32 // attempts that it has not answered yet
	answered atomic.Int64 // when the last one ended, in ns since 1970; 0 is never
}

// ask makes an attempt, for any goroutine.
func (r *receiver) ask(send func() webhook.Result) webhook.Result {
	r.asked.Add(1)
	defer r.asked.Add(-1)
	defer func() { r.answered.Store(time.Now().UnixNano()) }()
	return send()
}

// holdsUp reports whether what is due for a receiver waits because of it: it fails, wants no attempts, or has
// one before it.
func (r *receiver) holdsUp(now time.Time) bool {
	return r.fails || !r.until(now).IsZero() || r.asked.Load() > 0 || now.Sub(time.Unix(0, r.answered.Load())) < busyTime
}

// maxQuiet is for how long a receiver is left alone at most because one answer asked for it. The delivery that was
// answered so waits for as long as was asked.
const maxQuiet = time.Hour

// until is when the next attempt may be made; zero is now.
func (r *receiver) until(now time.Time) time.Time {
	if until := r.quiet.Load(); until != nil && until.After(now) {
		return *until
	}
	return time.Time{}
}

// receiverOf returns who a delivery goes to.
func (t *target) receiverOf(d *delivery) *receiver {
	name := t.poolName(d)
	r := t.receivers[name]
	if r == nil {
		r = &receiver{}
		t.receivers[name] = r
	}
	return r
}

// forgetReceiver forgets what is known of whom a delivery went to, if that was the last one to a URL.
func (t *target) forgetReceiver(d *delivery) {
	if d.grant != nil && t.calls[d.grant.URL] == 0 {
		delete(t.receivers, t.poolName(d))
	}
}

// noteReceiver takes note of what an attempt says of a receiver. One that has too much to do is left alone for as
// long as it asks, with all that goes to it.
func (t *target) noteReceiver(d *delivery, r *webhook.Result) {
	to := t.receiverOf(d)
	switch r.Outcome {
	case webhook.Interrupted, webhook.Expired:
		return
	case webhook.Delivered:
		to.fails = false
		return
	case webhook.Throttled:
		now := time.Now()
		if until := now.Add(min(r.RetryAfter, maxQuiet)); until.After(now) && until.After(to.until(now)) {
			to.quiet.Store(&until)
		}
	case webhook.Failed, webhook.Rejected, webhook.Gone:
	}
	to.fails = true
}
