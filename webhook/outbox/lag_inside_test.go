package outbox

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// TestSettledWithoutAWriteIsNoLag: what the cursor was written before, and is settled since without anything that was
// delivered or kept, is no lag, although nothing follows that would have the cursor written.
func TestSettledWithoutAWriteIsNoLag(t *testing.T) {
	m := newMissing(t)
	now := time.Now()
	it := &item{id: at(101), read: now, at: now, open: 1}
	m.window.add(it)
	m.window.reached(it.id)
	m.cursor.passes(it.at)
	m.writeCursor(time.Now())
	if m.takes(); !m.behind().Equal(it.at) {
		t.Fatalf("with an event that is open it is behind since %v", m.behind())
	}
	it.settle() // its subscription was deleted
	m.writeCursor(time.Now().Add(idlePause))
	if m.takes(); !m.behind().IsZero() {
		t.Errorf("it is behind since %v", m.behind())
	}
}

// TestDueAtWhoFails: what is due for a receiver that failed last waits because of it, however long ago that was; once it
// takes something, no more.
func TestDueAtWhoFails(t *testing.T) {
	for outcome, holds := range map[webhook.Outcome]bool{webhook.Failed: true, webhook.Rejected: true, webhook.Delivered: false} {
		m := newMissing(t)
		due := time.Now().Add(-time.Minute)
		d := &delivery{target: m.target, record: recordName("x", at(101).String())}
		d.progress.Due = due
		m.add(d)
		m.target.noteReceiver(d, &webhook.Result{Outcome: webhook.Failed})
		m.target.noteReceiver(d, &webhook.Result{Outcome: outcome})
		if since := m.target.dueSince(time.Now()); since.IsZero() != holds {
			t.Errorf("after %s it is due since %v", outcome, since)
		}
	}
}
