package outbox

import (
	"cmp"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/heap"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// delivery is one event for one target. It is pending until its record is deleted.
type delivery struct {
	form
	cell       // its record, which is written if it is not delivered at once
	heap.Place // in the queue of due deliveries
	target     *target
	lane       *lane
	size       int           // of the payload, in bytes, when it was admitted
	gap        events.Missed // of an events.missed: the payload may be about less yet
	progress   webhook.Progress
	last       time.Time // attempt, or when it was loaded
	asked      bool      // a tenant asked for the next attempt

	// A first attempt waits for those before it about the same locks.
	first    bool // it is still to be made
	waitsFor int
	blocks   []*delivery
	names    []string

	items   []*item     // that wait for it
	held    bool        // it may not be attempted until earlier events are read, or it is written
	running bool        // it is attempted, or about to be
	waits   atomic.Bool // for a worker of the pool, since due
	due     time.Time
	stale   bool // it has changed since it was written
	over    bool // there are no more attempts
	ended   bool // it is over, and its record may go
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
func (d *delivery) Before(other *delivery) bool {
	return cmp.Or(d.due.Compare(other.due), cmp.Compare(d.key.ID, other.key.ID)) < 0
}

func (d *delivery) tellsMissed() bool { return d.gap != (events.Missed{}) }

// event returns the id of the event; zero of a test, a callback or an events.missed.
func (d *delivery) event() lock.EventID {
	id, err := lock.ParseEventID(d.ID)
	if err != nil || d.Call != nil {
		return lock.EventID{}
	}
	return id
}

// begin starts the schedule. It goes by this process's clock, which does not jump.
func (d *delivery) begin(now time.Time) {
	var notAfter time.Time
	if d.Call != nil && d.Call.Held {
		notAfter = d.Call.lasts
	}
	d.progress = webhook.Begin(now, notAfter)
}

// tooLate reports whether a delivery is useless at an instant of this process's clock.
func (d *delivery) tooLate(at time.Time) bool {
	return !d.progress.NotAfter.IsZero() && !at.Before(d.progress.NotAfter)
}

// note keeps the outcome of an attempt.
func (d *delivery) note(r *tried) {
	d.Tried, d.last = d.Tried+1, time.Now()
	d.Attempts = append(d.Attempts, Attempt{
		At: r.at, Outcome: r.Outcome, Status: r.Status, Err: r.Err, TookMS: r.Took.Milliseconds(),
		SkewS: int64(r.DateSkew.Seconds()), RetryS: int64(r.RetryAfter.Seconds()),
	})
	d.Attempts = d.Attempts[max(0, len(d.Attempts)-maxAttempts):]
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
		d.held = ended == webhook.StateDelivered && d.stale // or the same message is sent again
	}
}

// unending reports whether an events.missed begins its schedule again. It is never given up while
// there is the subscription, and more may be missed than the attempt said.
func (d *delivery) unending(r *tried) bool {
	if d.progress.State == webhook.StateDelivered {
		return missedID(d.gap) != r.id
	}
	return d.progress.State != webhook.StatePending
}

// settle has nothing wait for the delivery any more.
func (d *delivery) settle() {
	items := d.items
	d.items = nil
	for _, it := range items {
		it.settle()
	}
}
