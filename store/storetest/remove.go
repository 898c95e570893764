package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func removeCases() []testCase {
	return []testCase{
		{name: "remove/the reason reaches both feeds", run: removeReason},
		{name: "remove/a repetition is lost and changes nothing", run: removeAgain},
		{name: "remove/takes the entry and no other", run: removeExactly},
		{name: "remove/a later entry with the same id survives", run: removeEarlier},
		{name: "remove/only while what it was decided by is there", run: removeWhile},
		{name: "remove/a lost one costs none beside it", run: removeBeside},
		{name: "remove/ends are remembered", run: removeRemembered},
		{name: "remove/a withdrawal is told and not remembered", run: removeWithdrawn},
	}
}

// reasons are those that are given with a removal and remembered.
func reasons() []lock.Reason { return []lock.Reason{lock.Released, lock.Revoked, lock.WaitTimeout} }

func removeReason(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	want := map[lock.ID]lock.Reason{}
	for i, why := range slices.Repeat(reasons(), 4) {
		e := t.enqueue(t.client(i/2), t.draft("a"))
		t.remove(t.client(i), e, why)
		t.wantQueue(t.client(i+1), t.ref("a"))
		want[e.ID] = why
	}
	t.settle(feeds...)
	for _, f := range feeds {
		v := f.state()
		for id, why := range want {
			if n, d := v.departures(id); v.whole() && (n != 1 || d.Reason != why) {
				t.Errorf("left %d times, with reason %q, want once, %q", n, d.Reason, why)
			}
		}
	}
}

// removeWhile removes on the strength of other entries: one that is there, one that
// is gone, and one whose id has come again since.
func removeWhile(t *trial) {
	first, second, waiter := t.enqueue(t.A, t.repeatable("a")), t.enqueue(
		t.B, t.draft("a"),
	), t.enqueue(t.A, t.draft("a"))
	bystander := t.enqueue(t.B, t.draft("b"))
	t.remove(t.B, second, lock.Released)
	wantChangedOf := func(e *lock.Entry, while ...*lock.Entry) {
		t.Helper()
		err := t.B.Remove(t.ctx, e, lock.Withdrawn, while...)
		if typed := t.typed("Remove", err); typed == nil || typed.Code != lock.Changed {
			t.Errorf("Remove while one of %d others is gone = %v, want %s", len(while), err, lock.Changed)
		}
	}
	wantChangedOf(waiter, second)
	wantChangedOf(waiter, first, bystander, second)
	t.wantQueue(t.A, t.ref("a"), first, waiter)
	if err := t.B.Remove(t.ctx, waiter, lock.WaitTimeout, first, bystander); err != nil {
		t.Errorf("Remove while all others are there = %v", err)
	}
	t.wantQueue(t.A, t.ref("a"), first)
	t.wantLost("Remove of a removed entry", t.A.Remove(t.ctx, waiter, lock.Withdrawn, first))
	t.wantLost("Remove of a removed entry", t.A.Remove(t.ctx, waiter, lock.Withdrawn, second))

	draft := t.repeatable("c")
	earlier, behind := t.enqueue(t.A, draft), t.enqueue(t.A, t.draft("c"))
	t.remove(t.B, earlier, lock.Withdrawn)
	later := t.enqueue(t.B, draft)
	wantChangedOf(behind, earlier)
	t.wantQueue(t.A, t.ref("c"), behind, later)
}

func removeAgain(t *trial) {
	b := t.follow(t.B)
	e := t.enqueue(t.A, t.draft("a"))
	t.remove(t.B, e, lock.Released)
	for i := range 4 {
		t.wantLost("Remove of a removed entry", t.client(i).Remove(t.ctx, e, lock.Revoked))
	}
	t.wantLost("Remove of a removed entry", t.A.Remove(t.ctx, e, lock.Withdrawn))
	unknown := t.draft("a")
	unknown.Number, unknown.Handle = e.Number, e.Handle
	t.wantLost("Remove of an entry that never was", t.A.Remove(t.ctx, unknown, lock.Revoked))
	t.settle(b)
	if v := b.state(); !v.whole() {
		t.Log("the feed started over")
	} else if n, d := v.departures(e.ID); n != 1 || d.Reason != lock.Released {
		t.Errorf("left %d times, with reason %q, want once, %q", n, d.Reason, lock.Released)
	}
	for _, end := range t.follow(t.Reopen(t.T)).state().ended {
		if end.ID != e.ID || end.Reason != lock.Released {
			t.Errorf("%s is remembered as %q", end.ID, end.Reason)
		}
	}
}

// removeExactly removes one of three entries of a lock, while other locks and
// tenants have entries of the same name, and forgeries of it that must do nothing.
func removeExactly(t *trial) {
	before, e, after := t.enqueue(t.A, t.draft("a")), t.enqueue(t.A, t.draft("a")), t.enqueue(
		t.B, t.repeatable("a"),
	)
	beside, foreign := t.enqueue(t.A, t.draft("b")), t.enqueue(t.A, draft("other", "a"))
	for _, whole := range []*lock.Entry{e, after} {
		for what, forged := range forgeries(whole) {
			t.wantLost("Remove of "+what, t.A.Remove(t.ctx, forged, lock.Released))
			t.wantLost("Remove of "+what, t.B.Remove(t.ctx, forged, lock.Revoked))
		}
	}
	t.wantQueue(t.A, t.ref("a"), before, e, after)
	t.remove(t.B, e, lock.Released)
	t.wantQueue(t.A, t.ref("a"), before, after)
	t.wantQueue(t.A, t.ref("b"), beside)
	t.wantQueue(t.B, lock.Ref{Tenant: "other", Name: "a"}, foreign)
}

// removeEarlier enqueues an id again after its entry was withdrawn. A client that still
// has the first entry must not touch the second.
func removeEarlier(t *trial) {
	draft := t.repeatable("a")
	first := t.enqueue(t.A, draft)
	t.remove(t.A, first, lock.Withdrawn)
	between := t.enqueue(t.B, t.draft("a"))
	second := t.enqueue(t.B, draft)
	if second.Number <= between.Number {
		t.Errorf("the second entry has number %d, want above %d", second.Number, between.Number)
	}
	for i := range 2 {
		t.wantLost("Remove of the first entry", t.client(i).Remove(t.ctx, first, lock.Released))
		t.wantLost("Renew of the first entry", t.client(i).Renew(t.ctx, first))
	}
	t.wantQueue(t.A, t.ref("a"), between, second)
	t.remove(t.A, second, lock.Released)
}

// removeBeside removes entries while others, through the same client, remove and
// retry what is not there or is there already: writes that share a transaction
// must not share their fate.
func removeBeside(t *trial) {
	gone := t.enqueue(t.A, t.draft("gone"))
	t.remove(t.A, gone, lock.Released)
	there := t.enqueue(t.A, t.repeatable("there"))
	together(12, func(worker int) {
		for range 25 {
			switch worker % 4 {
			case 0:
				t.wantLost("Remove", t.A.Remove(t.ctx, gone, lock.Released))
			case 1:
				if again, _, err := t.A.Enqueue(t.ctx, clone(there)); err != nil ||
					again.Number != there.Number {
					t.Errorf("Enqueue of what is there = %v, %v", again, err)
				}
			default:
				e, _, err := t.A.Enqueue(t.ctx, t.draft("a"))
				if err == nil {
					err = t.A.Remove(t.ctx, e, lock.Released)
				}
				if err != nil {
					t.Errorf("Enqueue and Remove beside others that were lost: %v", err)
				}
			}
		}
	})
	t.wantQueue(t.B, t.ref("a"))
	t.wantQueue(t.B, t.ref("there"), there)
}

// removeRemembered asks a client that opens later for what ended before.
func removeRemembered(t *trial) {
	start := time.Now()
	var want []store.Ended
	for i, why := range slices.Repeat(reasons(), 3) {
		e := t.enqueue(t.client(i), t.draft("a"))
		t.remove(t.client(i/2), e, why)
		want = append(want, store.Ended{ID: e.ID, Tenant: e.Tenant, Reason: why})
	}
	late := t.follow(t.Reopen(t.T)).state().ended
	for i := range late {
		if at := late[i].At; at.Before(start.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("remembered at %v, removed between %v and now", at, start)
		}
		late[i].At, late[i].Was = time.Time{}, store.Past{}
	}
	// Ends within one tick of the store's clock have no order.
	byID := func(a, b store.Ended) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(late, byID)
	slices.SortFunc(want, byID)
	if diff := diff(want, late); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
}

// removeWithdrawn takes entries back. Feeds must tell that from an expiry, which
// would be counted and remembered, so that the same idempotency key would find
// its lock lost. A store that records expiries by itself gets the time to do so.
func removeWithdrawn(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	start := time.Now()
	withdrawn := []*lock.Entry{t.enqueue(t.A, t.draft("a")), t.enqueue(t.B, t.draft("a", "b"))}
	for i, e := range withdrawn {
		t.remove(t.client(i), e, lock.Withdrawn)
	}
	t.settle(feeds...)
	for _, f := range feeds {
		for _, e := range withdrawn {
			if v := f.state(); !v.whole() {
				continue
			} else if n, d := v.departures(e.ID); n != 1 || d.Reason != lock.Withdrawn {
				t.Errorf("left %d times, with reason %q, want once, %q", n, d.Reason, lock.Withdrawn)
			}
		}
	}
	until(start.Add(t.MinTTL*3/2), t.MinTTL/10, func() { t.wantQueue(t.A, t.ref("a")) })
	for _, end := range t.follow(t.Reopen(t.T)).state().ended {
		t.Errorf("remembered as %q, want no record", end.Reason)
	}
}
