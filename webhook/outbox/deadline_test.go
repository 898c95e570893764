package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
)

// ofOurs is a tenant whose callbacks the owner sends.
func (m *missing) ofOurs() string {
	tenant := "acme"
	for i := 0; shardOf(tenant) != m.name; i++ {
		tenant = fmt.Sprint("tenant-", i)
	}
	return tenant
}

// grants has the owner tell a tenant's caller of a grant, of use for so long.
func (m *missing) grants(tenant string, number uint64, ttl time.Duration) *delivery {
	m.t.Helper()
	e := &lock.Entry{ID: "e", Tenant: tenant, Number: number, TTL: ttl, Claims: []lock.Claim{{Name: "a"}}, Callback: &lock.Callback{URL: "https://there"}}
	m.tell(&lock.Event{ID: at(number), Kind: lock.EventAcquired, Entry: e, Held: true, At: time.Now()})
	d := m.targets.callbacks[tenant].pending[recordName(Callbacks, fmt.Sprint(number, "-e"))]
	if d == nil {
		m.t.Fatal("it is not called")
	}
	return d
}

// attempts has an attempt of a delivery end.
func (m *missing) attempts(d *delivery, r webhook.Result) {
	m.t.Helper()
	m.due.remove(d)
	m.attempted(d, tried{Result: r, at: m.Now(), id: d.id})
	m.takes()
}

// wantEnded checks that nothing is left of a delivery but what people are shown of it.
func (m *missing) wantEnded(d *delivery, state webhook.State, tried int) {
	m.t.Helper()
	t := d.target
	m.takes()
	if !d.over || len(t.pending) > 0 || len(t.leaving) > 0 || d.Queued() || m.has(d) {
		m.t.Errorf("it is not over: %+v, of %d that are pending, and kept: %v", d.progress, len(t.pending), m.has(d))
	}
	if len(m.targets.load) > 0 || t.bytes != 0 || len(t.calls) > 0 || len(t.receivers) > 0 || len(t.tails) > 0 {
		m.t.Errorf("it takes room: %+v, %d bytes, %v, and %d receivers are known", m.targets.load, t.bytes, t.calls, len(t.receivers))
	}
	if at := m.window.settled(); at != m.window.last {
		m.t.Errorf("the cursor stays at %v", at)
	}
	m.writeStates(time.Now().Add(statePause))
	m.takes()
	page, err := NewDeliveries(m.Records, m.Locks, nil).List(m.t.Context(), t.tenant, t.id, "", 10)
	if err != nil || len(page.Deliveries) != 1 {
		m.t.Fatalf("shown are %+v: %v", page, err)
	}
	if is := page.Deliveries[0]; is.ID != d.id || is.State != state || is.Tried != tried || len(is.Attempts) == 0 || !is.Due.IsZero() {
		m.t.Errorf("shown is %+v, want it %s after %d attempts", is, state, tried)
	}
}

// TestEndsAtItsDeadline: what is of no use any more, or has no attempt left before it is, ends, and leaves its room to
// others; what came of it is shown.
func TestEndsAtItsDeadline(t *testing.T) {
	failed := webhook.Result{Outcome: webhook.Failed, Status: 500, Err: "it answered 500"}
	for name, c := range map[string]struct {
		end   func(m *missing, d *delivery)
		tried int
	}{
		"no attempt is left before it": {func(m *missing, d *delivery) { m.attempts(d, failed) }, 2},
		"the receiver wants the next one after it": {func(m *missing, d *delivery) {
			m.attempts(d, webhook.Result{Outcome: webhook.Throttled, Status: 503, RetryAfter: time.Hour})
		}, 2},
		"it was not sent before it": {func(m *missing, d *delivery) { m.attempts(d, webhook.Result{Outcome: webhook.Expired}) }, 1},
		"one that was asked for": {func(m *missing, d *delivery) {
			d.asked = true
			m.attempts(d, webhook.Result{Outcome: webhook.Throttled, Status: 503, RetryAfter: time.Hour})
		}, 2},
		"one that was asked for, and not sent before it": {func(m *missing, d *delivery) {
			d.asked = true
			m.attempts(d, webhook.Result{Outcome: webhook.Expired})
		}, 1},
		"it has passed when it is due": {func(m *missing, d *delivery) {
			<-time.After(time.Minute)
			m.attemptDue()
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				m := newMissing(t)
				m.makesNoAttempts()
				d := m.grants(m.ofOurs(), 50, time.Minute)
				m.attempts(d, failed)
				if d.over || !m.has(d) || len(m.targets.load) == 0 {
					t.Fatalf("it is over before its deadline: %+v", d.progress)
				}
				c.end(m, d)
				m.wantEnded(d, webhook.StateExpired, c.tried)
			})
		})
	}
}

// TestEndsThoughItsReceiverIsLeftAlone: what waits for a receiver that wants nothing for an hour ends when it is of no use
// any more, and takes no room until then.
func TestEndsThoughItsReceiverIsLeftAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		d := m.grants(m.ofOurs(), 50, time.Minute)
		m.attempts(d, webhook.Result{Outcome: webhook.Failed, Status: 500})
		until := time.Now().Add(time.Hour)
		d.target.receiverOf(d).quiet.Store(&until)
		for range 13 {
			<-time.After(5 * time.Second)
			m.attemptDue()
			m.takes()
		}
		m.wantEnded(d, webhook.StateExpired, 1)
	})
}

// TestEndsBeforeAnother: what is of no use any more, and was not attempted, holds up nothing that waits for its attempt.
func TestEndsBeforeAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		m.makesNoAttempts()
		tenant := m.ofOurs()
		first, next := m.grants(tenant, 50, time.Minute), m.grants(tenant, 60, time.Hour)
		if next.waitsFor != 1 {
			t.Fatal("it does not wait")
		}
		<-time.After(time.Minute)
		m.attemptDue()
		if m.takes(); !first.over || next.waitsFor != 0 || !next.Queued() {
			t.Errorf("it waits for %d, which is over: %t", next.waitsFor, first.over)
		}
	})
}

// lateLocks are those of entries that are all there, whose callers have a secret each; what is sent to them comes too late.
type lateLocks struct {
	Locks
	Subscriptions
	sent atomic.Int64
}

func (*lateLocks) Gone(lock.ID, uint64) bool { return false }
func (*lateLocks) Token(*lock.Entry) string  { return "token" }

func (*lateLocks) CallbackSecrets(string, time.Time) []webhook.Secret {
	return make([]webhook.Secret, 1)
}

func (l *lateLocks) Send(context.Context, webhook.Target, webhook.Message) webhook.Result {
	l.sent.Add(1)
	return webhook.Result{Outcome: webhook.Expired}
}

// TestEndsWhileItsTenantWaits: what is of no use any more when its tenant has used up its attempts does not wait for the next
// second, in which others have their turns: else a tenant with too many callbacks had none that comes in time.
func TestEndsWhileItsTenantWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m, all := newMissing(t), &lateLocks{}
		m.Locks, m.Subscriptions, m.Sender = all, all, all
		m.pool = webhook.NewPool(webhook.PoolConfig{Next: func(string) time.Duration { return time.Minute }})
		defer m.pool.Close(t.Context())
		d := m.grants(m.ofOurs(), 50, 10*time.Second)
		<-time.After(9 * time.Second)
		if all.sent.Load() != 0 {
			t.Fatal("it does not wait")
		}
		select {
		case f := <-m.brought:
			f()
		case <-time.After(3 * time.Second):
			t.Fatal("it waits")
		}
		m.wantEnded(d, webhook.StateExpired, 0)
	})
}

// TestWhatWasNotCountedIsNotSent: an attempt that the pool has not counted, as its receiver wanted none then, is not made
// a moment later either: thousands wait for the same instant.
func TestWhatWasNotCountedIsNotSent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m, all := newMissing(t), &lateLocks{}
		m.Locks, m.Subscriptions, m.Sender = all, all, all
		m.makesNoAttempts()
		d := m.grants(m.ofOurs(), 50, time.Hour)
		to, until := d.target.receiverOf(d), time.Now().Add(time.Second)
		to.quiet.Store(&until)
		for _, quiet := range []bool{true, false} {
			job := m.job(d, to)
			if job.Void() != quiet {
				t.Fatalf("it attempts something: %v", quiet)
			}
			<-time.After(time.Until(until))
			job.Run(t.Context())
			(<-m.brought)()
			if sent := all.sent.Load() > 0; sent == quiet {
				t.Errorf("it is sent: %v", sent)
			}
		}
		m.takes()
	})
}
