package outbox

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
)

// TestRequestsOfManyPages: of requests that do not fit into one page of the list the rest is looked at in a moment.
func TestRequestsOfManyPages(t *testing.T) {
	m := newMissing(t)
	m.tells(0)
	for i := range store.MaxRecordPage + 1 {
		m.putRequest("acme", fmt.Sprint("r", i), &request{Webhook: "x", Test: fmt.Sprint("test-", i)})
	}
	for range 2 {
		m.lookAtRequests(time.Now())
		m.takes()
	}
	page, err := m.Records.List(t.Context(), store.RecordQuery{Kind: requestKind(m.name)})
	if err != nil || len(page.Records) > 0 || len(m.target.pending) != store.MaxRecordPage+1 {
		t.Errorf("%d are asked for still, and %d pending: %v", len(page.Records), len(m.target.pending), err)
	}
}

// TestStrangeIsForgotten: of a request about what nobody knows nothing is remembered once it is carried out.
func TestStrangeIsForgotten(t *testing.T) {
	m := newMissing(t)
	key := store.RecordKey{Kind: requestKind(m.name), Tenant: "acme", ID: "r"}
	if !m.early(key, "unknown") || len(m.asked.strange) != 1 {
		t.Fatalf("it is carried out at once: %v", m.asked.strange)
	}
	m.asked.strange[key] = time.Now().Add(-strangeTime)
	if m.early(key, "unknown") || len(m.asked.strange) != 0 {
		t.Errorf("it waits for ever, or is remembered: %v", m.asked.strange)
	}
}

// TestReceiversOfCallersAreForgotten: of the URLs of callbacks, of which each can be another, nothing is remembered once
// nothing is to be sent there.
func TestReceiversOfCallersAreForgotten(t *testing.T) {
	m := newMissing(t)
	callers := m.owner.target("acme", Callbacks)
	for i := range 10 {
		d := &delivery{target: callers, record: fmt.Sprint(i), grant: &callbackCall{URL: fmt.Sprint("https://example.org/", i)}}
		m.add(d)
		callers.receiverOf(d)
		m.targets.drop(d)
	}
	if len(callers.receivers) > 0 || len(callers.calls) > 0 {
		t.Errorf("%d receivers are remembered, of %d URLs", len(callers.receivers), len(callers.calls))
	}
}

// TestNamesThatAreTold: of a set a delivery keeps an order with the locks that it tells of, for which its bytes count, and
// with no others.
func TestNamesThatAreTold(t *testing.T) {
	m := newMissing(t)
	m.tells(0)
	m.target.sub.Paused = false
	m.makesNoAttempts()
	m.target.sub.Locks = "b"
	m.target.filter = filterOf(m.target.sub)
	set := &lock.Entry{ID: "set", Tenant: "acme", Number: 101, Set: true, Claims: []lock.Claim{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	m.offer(m.target, &body{event: &lock.Event{ID: at(101), Kind: lock.EventAcquired, Entry: set, Held: true, At: time.Now()}}, &item{})
	if d := m.target.pending[recordName("x", at(101).String())]; d == nil || !slices.Equal(d.names, []string{"b"}) || len(m.target.tails) != 1 {
		t.Errorf("it waits for %d locks: %+v", len(m.target.tails), d)
	}
}

// TestFullIsSaidOnce: a tenant whose callbacks find no room has a line in the log now and then, however many these are.
func TestFullIsSaidOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m, log := newMissing(t), new(strings.Builder)
		m.Logger = slog.New(slog.NewTextHandler(log, nil))
		callers := m.owner.target("acme", Callbacks)
		lack := func(n int) {
			for i := range n {
				m.lack(&delivery{target: callers, id: at(uint64(i)).String(), grant: &callbackCall{}}, &item{})
			}
		}
		lack(1000)
		<-time.After(time.Minute)
		lack(1000)
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "silenced=999") {
			t.Errorf("the log is\n%s", text)
		}
	})
}

// TestShorterRetryAfter: a receiver that has asked for much time, and then for less, is left alone for as long as it asked
// for first.
func TestShorterRetryAfter(t *testing.T) {
	m := newMissing(t)
	d := &delivery{target: m.target, record: "x:1-1"}
	for _, asks := range []time.Duration{10 * time.Minute, time.Second} {
		m.target.noteReceiver(d, &webhook.Result{Outcome: webhook.Throttled, RetryAfter: asks})
	}
	if until := m.target.receiverOf(d).until(time.Now()); time.Until(until) < 9*time.Minute {
		t.Errorf("it is left alone for %v", time.Until(until))
	}
}

// TestAgainWithoutAStream: who asks for everything again where the past cannot be read is told that he misses it.
func TestAgainWithoutAStream(t *testing.T) {
	m := newMissing(t)
	m.tells(3)
	m.window.last, m.Locks = at(103), deaf{}
	m.asks(&request{Since: 1})
	m.takes()
	if got := m.target.lost; got == nil || got.Before != at(103) || got.because != api.MissedUnknown {
		t.Errorf("it is told to miss %+v", got)
	}
}
