package outbox_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// close closes a lock of acme, as a replica does that stops before it has written who held.
func (w *world) close(name string) *lock.Entry {
	w.t.Helper()
	locks, err := lock.ParseNamePattern(name)
	if err != nil {
		w.t.Fatal(err)
	}
	client := w.Connect(nil)
	defer client.Close()
	now, ref := time.Now(), lock.ClosuresOf("acme")
	e, _, err := client.Enqueue(w.t.Context(), &lock.Entry{
		ID: "closure", Tenant: ref.Tenant, Claims: []lock.Claim{{Name: ref.Name, Mode: lock.Exclusive}},
		Holder: "operator", TTL: lock.MaxTTL, EnqueuedAt: now, WaitUntil: now.Add(lock.MaxTTL),
		Closing: &lock.Closing{Locks: locks, Until: now.Add(time.Hour), Reason: "repair", By: "operator"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// TestCallbackInDoubt: an entry comes to hold in a gap of the feed of who sends, and its lock is
// closed there too. Only when it is known who held then, its caller is told: once. Until then the
// cursor waits.
func TestCallbackInDoubt(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		if _, err := w.hooks.RotateCallback(t.Context(), actor(principal("acme"))); err != nil {
			t.Fatal(err)
		}
		one, _ := warm(t, w)
		<-time.After(outbox.SettledAfter)
		two := w.replica("two") // sends nothing yet
		<-time.After(time.Second)
		held := two.take("acme", "batch")
		w.async(two, "batch", time.Hour)
		<-time.After(time.Second)
		one.cable.Cut(memory.Broken)
		<-time.After(time.Millisecond) // until then its feed may tell what comes
		two.release("acme", "batch", held)
		closed := w.close("batch")
		<-time.After(100 * time.Millisecond)
		two.cable.Cut(memory.Broken) // who knows who held cannot write that
		one.cable.Cut("")
		<-time.After(5 * time.Second)
		if at := w.cursorOf("acme"); at.Number >= closed.Number {
			t.Errorf("the cursor is at %v already, behind what is in doubt", at)
		}
		if got := w.received(there); len(got) != 0 {
			t.Errorf("while it is not known who holds it is told %+v", got)
		}
		two.cable.Cut("")
		until(t, 10*time.Second, "the caller is told", func() bool { return len(w.received(there)) > 0 })
		<-time.After(10 * time.Second)
		if got := w.received(there); len(got) != 1 || got[0].event.Type != string(lock.EventAcquired) {
			t.Errorf("told %+v", got)
		}
	})
}
