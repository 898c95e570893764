package outbox

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// goes has the target be a subscription that is sent what happens, but makes no attempts.
func (m *missing) goes(url string) {
	m.pool = webhook.NewPool(webhook.PoolConfig{})
	m.pool.Close(m.ctx)
	m.target.sub = &subscription.Subscription{ID: "x", Tenant: "acme", URL: url, Locks: "*"}
	m.target.allow()
}

// gone has an attempt that was made to a subscription be answered with 410.
func (m *missing) gone(d *delivery, to *subscription.Subscription) {
	m.t.Helper()
	m.attempted(d, tried{Result: webhook.Result{Outcome: webhook.Gone, Status: 410}, at: m.Now(), id: d.id, sub: to})
	m.takes()
}

// TestGoneElsewhere: a URL that a subscription had, and where it was before it was set going again, says nothing of
// where it is now: it is not disabled, and what was to be told is told there.
func TestGoneElsewhere(t *testing.T) {
	for name, was := range map[string]subscription.Subscription{
		"another URL":     {URL: "https://old", Enabled: 1},
		"set going since": {URL: "https://new"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			m.goes("https://new")
			m.target.sub.Enabled = 1
			d := m.owes(50)
			step := d.progress.Attempts
			m.gone(d, &was)
			if m.target.disabled() || m.target.Health.Failures != 0 {
				t.Errorf("it is disabled, or fails: %+v", m.target.Health)
			}
			if d.over || !d.Queued() || d.due.After(time.Now()) || d.progress.Attempts != step || d.beside != 1 {
				t.Errorf("it is not sent at once: %+v", d)
			}
		})
	}
}

// TestGoneIsMissed: what was answered with 410 is told as missed once the receiver is set going again, and what tells
// of that, or of what was missed before, is not lost by a 410.
func TestGoneIsMissed(t *testing.T) {
	m := newMissing(t)
	m.goes("https://here")
	told := m.misses(10, 20)
	d := m.owes(50)
	m.gone(d, m.target.sub)
	if !m.target.disabled() || d.progress.State != webhook.StateGone || !d.over {
		t.Errorf("it is not disabled: %+v, %+v", m.target.Health, d.progress)
	}
	m.flushMissed()
	m.takes()
	m.wantMissed("10-1_50-1", api.MissedUndelivered)
	m.gone(told, m.target.sub)
	if told.over || told.progress.State != webhook.StatePending || !m.has(told) || !told.Queued() {
		t.Errorf("what tells of it is lost: %+v", told)
	}
	if m.has(d) {
		t.Error("what is told as missed is kept for ever")
	}
}
