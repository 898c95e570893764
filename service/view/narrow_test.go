package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// TestNarrowedEntry: the write by which a choosing entry leaves queues grants it, and the entries
// behind it in the queues that it leaves. It counts at the lock that it keeps alone.
func TestNarrowedEntry(t *testing.T) {
	events := &teller{t: t}
	v := view.New(view.Config{
		Events: events, Wall: time.Now, Refusal: func() error { return nil }, Fresh: time.Hour,
	})
	v.Reset(store.Snapshot{Number: 6})
	waiting := func(e *lock.Entry) *lock.Entry {
		e.EnqueuedAt, e.WaitUntil = time.Now(), time.Now().Add(time.Hour)
		return e
	}
	join := func(e *lock.Entry) {
		v.Apply(e.Number, []store.Change{{Number: e.Number, Joined: waiting(e)}})
	}
	pool, behind := locktest.Pool("pool", 9, 1, "a", "b"), locktest.Entry("behind", 10, "b")
	pool.AskWithin = new(time.Duration)
	join(locktest.Entry("a", 7, "a"))
	join(locktest.Entry("b", 8, "b"))
	join(pool)
	join(behind)
	if st := v.Status("pool", 9); st.Choice != nil {
		t.Fatalf("it may keep %v, and both are held", st.Choice)
	}
	watch := v.Waits.Watch("pool")
	defer watch.End()
	v.Apply(11, []store.Change{{Number: 11, Left: "a", Reason: lock.Released}})
	v.Apply(12, []store.Change{{Number: 12, Left: "b", Reason: lock.Released}})
	select {
	case <-watch.Changed:
	default:
		t.Error("its request was not notified that it can choose")
	}
	now := pool.Narrowed(v.Status("pool", 9).Choice)
	v.Apply(13, []store.Change{{Number: 13, Narrowed: now}})
	want := []heard{
		{"13-1", lock.EventAcquired, "pool", "", true, ""},
		{"13-2", lock.EventAcquired, "behind", "", true, ""},
	}
	if diff := cmp.Diff(want, events.after(12)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if st := v.Status("pool", 9); st.State != view.Held || st.Entry != now || !st.Queued {
		t.Errorf("it stands as %+v", st)
	}
	used := v.Quotas.AccountOf("t").Used
	if used[quota.Places] != 2 || used[quota.HeldLocks] != 2 || used[quota.Waiting] != 0 {
		t.Errorf("its tenant uses %v", used)
	}
	if v.AskedAt(lock.Ref{Tenant: "t", Name: "b"}) != nil {
		t.Error("it still asks for a lock that it left")
	}
	v.Reset(store.Snapshot{Number: 14, Entries: []*lock.Entry{now, behind}})
	if st := v.Status("pool", 9); st.State != view.Held || len(st.Entry.Claims) != 1 {
		t.Errorf("after a list it stands as %+v", st)
	}
}
