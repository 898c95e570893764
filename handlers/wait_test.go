package handlers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// checkQueue compares the lock with who should hold it and who should wait.
func (c *client) checkQueue(name string, first entry, subjects []string) {
	c.t.Helper()
	v := c.look(name)
	if len(v.Holders) != 1 || v.Holders[0].Fence != *first.Fence ||
		v.Holders[0].Holder != first.Holder || v.Fence != *first.Fence {
		c.t.Errorf(
			"holders = %+v, newest fence %d, want %s with %d", v.Holders, v.Fence, first.Holder,
			*first.Fence,
		)
	}
	want := make([]waiter, 0, len(subjects))
	for i, s := range subjects {
		want = append(want, waiter{Position: i + 1, Holder: s, Mode: "exclusive"})
	}
	if diff := cmp.Diff(
		want, v.Waiters, cmpopts.IgnoreFields(waiter{}, "EnqueuedAt", "WaitedSeconds"),
	); diff != "" {
		c.t.Errorf("waiters (-want +got)\n%s", diff)
	}
	for _, w := range v.Waiters {
		if w.WaitedSeconds == nil || *w.WaitedSeconds < 0 || w.EnqueuedAt.IsZero() {
			c.t.Errorf("waiter = %+v, want how long it has waited", w)
		}
	}
}

// TestWaitTimeoutLeavesTheQueue: after wait_seconds the answer lists the holders, and the entry has
// left the queue.
func TestWaitTimeoutLeavesTheQueue(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	granted := c.post("/locks/orders:42")
	first := granted.held(http.StatusCreated)
	a := c.named("late").post("/locks/orders:42", body(`{"wait_seconds":0.2}`))
	checkInTheWay(t, granted, first, a.refused("wait_timeout"), 0)
	if took := a.received.Sub(a.sent); took < 200*time.Millisecond || took > promptly {
		t.Errorf("it took %v, want 0.2 s", took)
	}
	c.checkQueue("orders:42", first, nil)
}

// TestWaitIsResumedInThreeWays: a request is held open for no longer than the replica allows, and
// the entry can be gone on with in three ways, all in the same place.
func TestWaitIsResumedInThreeWays(t *testing.T) {
	t.Parallel()
	ways := map[string]func(c *client, e entry) *pending{
		"SameKey": func(c *client, _ entry) *pending {
			return c.start("POST", "/locks/orders:42", body(`{"wait_seconds":60}`), key("k"))
		},
		"EntryWithToken": func(c *client, e entry) *pending {
			return c.start("GET", entryPath(e)+"?wait_seconds=50", lockToken(e.Token))
		},
		"EntryWithFraction": func(c *client, e entry) *pending {
			return c.start("GET", entryPath(e)+"?wait_seconds=20.5", lockToken(e.Token))
		},
	}
	for name, resume := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			first := c.acquire("orders:42")
			a := c.at(shared.brief).named("b").
				post("/locks/orders:42", body(`{"wait_seconds":60}`), key("k"))
			e := a.waiting(http.StatusAccepted)
			if took := a.received.Sub(a.sent); took < briefHold || *e.Position != 1 {
				t.Errorf("%v after %v, want position 1 after %v", a, took, briefHold)
			}
			c.named("c").join("orders:42")
			p := resume(c.named("b"), e)
			c.checkQueue("orders:42", first, []string{"b", "c"})
			c.release(first)
			checkResumed(t, p.wait(), e)
		})
	}
}

// checkResumed: the grant is of the entry that waited.
func checkResumed(t *testing.T, a *answer, e entry) {
	t.Helper()
	status := http.StatusOK
	if a.method == http.MethodPost {
		status = http.StatusCreated
	}
	got := a.held(status)
	if got.ID != e.ID || got.Token != e.Token || !got.EnqueuedAt.Equal(e.EnqueuedAt.Time) ||
		*got.WaitedSeconds < briefHold.Seconds() {
		t.Errorf("resumed as %+v, want the entry %+v", got, e)
	}
}

// TestEntryStillWaits: going on to wait is held open for no longer than was asked
// for either.
func TestEntryStillWaits(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.acquire("orders:42")
	c.named("b").join("orders:42")
	e := c.at(shared.brief).post("/locks/orders:42", body(`{"wait_seconds":60}`)).
		waiting(http.StatusAccepted)
	if *e.Position != 2 {
		t.Errorf("position = %d, want 2", *e.Position)
	}
	a := c.get(entryPath(e)+"?wait_seconds=0.1", lockToken(e.Token))
	if again := a.waiting(http.StatusOK); again.ID != e.ID || *again.Position != 2 {
		t.Errorf("%v, want entry %s at position 2", a, e.ID)
	}
	if took := a.received.Sub(a.sent); took < 100*time.Millisecond || took > promptly {
		t.Errorf("it took %v, want 0.1 s", took)
	}
	if now := c.get(entryPath(e), lockToken(e.Token)).waiting(http.StatusOK); *now.Position != 2 {
		t.Errorf("position = %d, want 2", *now.Position)
	}
}

// TestWaitedSecondsOfAResume: a request that resumes after the grant, or looks at the entry, gets
// the time that it waited.
func TestWaitedSecondsOfAResume(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:42")
	const text = `{"wait_seconds":60}`
	e := c.at(shared.brief).post("/locks/orders:42", body(text), key("k")).waiting(http.StatusAccepted)
	c.release(first)
	seen := c.get(entryPath(e)+"?wait_seconds=5", lockToken(e.Token)).held(http.StatusOK)
	again := c.post("/locks/orders:42", body(text), key("k")).held(http.StatusCreated)
	if *again.WaitedSeconds < briefHold.Seconds() || *seen.WaitedSeconds < briefHold.Seconds() {
		t.Errorf(
			"waited_seconds = %v of a POST and %v of a GET, want more than %v", *again.WaitedSeconds,
			*seen.WaitedSeconds, briefHold,
		)
	}
}
