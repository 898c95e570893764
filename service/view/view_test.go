package view_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

type nobody struct{}

func (nobody) Begin(uint64)      {}
func (nobody) Add(lock.Event)    {}
func (nobody) Reached(uint64)    {}
func (nobody) Find(view.Finding) {}

func empty() *view.View {
	return view.New(view.Config{
		Events:  nobody{},
		Wall:    time.Now,
		Refusal: func() error { return nil },
		Fresh:   time.Hour,
	})
}

// TestRecalledEndsAreTheirTenants: ends from before a replica started
// count for the tenants whose they were, whose bound so holds for it too.
func TestRecalledEndsAreTheirTenants(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{Number: 6})
	var ends []store.Ended
	for n := range uint64(3) {
		ends = append(
			ends, store.Ended{ID: view.NumberedID(n), Tenant: "acme", Reason: lock.Released, At: time.Now()},
		)
	}
	v.Recall(ends, true)
	if n, nobodys := v.EndsOf("acme"), v.EndsOf(""); n != 3 || nobodys != 0 {
		t.Errorf("%d ends are the tenant's and %d nobody's, want 3 and 0", n, nobodys)
	}
}

// TestLostSince: a view is of the instant when it was lost, until it is there again.
func TestLostSince(t *testing.T) {
	v := empty()
	if _, lost := v.Progress.LostSince(); !lost {
		t.Error("a view that never was there is not lost")
	}
	v.Reset(store.Snapshot{Number: 6})
	if _, lost := v.Progress.LostSince(); lost {
		t.Error("a view that is there is lost")
	}
	before := time.Now()
	v.Lost(nil)
	after := time.Now()
	v.Lost(nil) // again, by an attempt that failed
	if at, lost := v.Progress.LostSince(); !lost || at.Before(before) || at.After(after) {
		t.Errorf("lost %t since %v, want between %v and %v", lost, at, before, after)
	}
}

// TestEndedAgainUnseen: an id whose end was seen can be used again, if that end was not put
// down yet, and end for another reason while the feed is interrupted.
func TestEndedAgainUnseen(t *testing.T) {
	v := empty()
	e := &lock.Entry{
		ID: view.NumberedID(1), Tenant: "acme", Number: 7, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
	v.Reset(store.Snapshot{Number: 6})
	v.Recall(nil, true)
	v.Apply(7, []store.Change{{Number: 7, Joined: e}})
	v.Apply(8, []store.Change{{Number: 8, Left: e.ID, Reason: lock.Expired}})
	v.Lost(nil)
	v.Reset(store.Snapshot{Number: 20})
	v.Recall([]store.Ended{{ID: e.ID, Tenant: "acme", Reason: lock.WaitTimeout, At: time.Now()}}, true)
	if st := v.Status(e.ID, 12); st.State != view.Gone || st.Reason != lock.WaitTimeout {
		t.Errorf("it is %+v, want gone for wait_timeout", st)
	}
	again := &lock.Entry{
		ID: e.ID, Tenant: "acme", Number: 21, EnqueuedAt: time.Now(), Claims: e.Claims,
	}
	v.Apply(21, []store.Change{{Number: 21, Joined: again}})
	v.Apply(22, []store.Change{{Number: 22, Left: e.ID, Reason: lock.Released}})
	v.Recall([]store.Ended{{ID: e.ID, Tenant: "acme", Reason: lock.WaitTimeout, At: time.Now()}}, true)
	if st := v.Status(e.ID, 21); st.Reason != lock.Released {
		t.Errorf("what was seen since the list counts less than what was before it: %+v", st)
	}
}

// TestGuessedEnd: that an entry expired because no reason is known counts less than its end that
// was seen, before or since.
func TestGuessedEnd(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{Number: 6})
	v.Recall(nil, true)
	e := &lock.Entry{
		ID: view.NumberedID(1), Tenant: "acme", Number: 7, EnqueuedAt: time.Now(),
		Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
	v.Apply(7, []store.Change{{Number: 7, Joined: e}})
	v.Lost(nil)
	v.Reset(store.Snapshot{Number: 8}) // it went; before the feed reports its end it is there again
	again := &lock.Entry{ID: e.ID, Tenant: "acme", Number: 9, EnqueuedAt: time.Now(), Claims: e.Claims}
	v.Apply(9, []store.Change{{Number: 9, Joined: again}})
	v.Apply(10, []store.Change{{Number: 10, Left: e.ID, Reason: lock.Released}})
	v.Lost(nil)
	v.Reset(store.Snapshot{Number: 20})
	v.Recall(nil, true)
	if st := v.Status(e.ID, 12); st.Reason != lock.Released {
		t.Errorf("it is told as %v, and was seen as released", st.Reason)
	}
}

// TestAnnouncementEnds: a near grant is announced while a request waits for it.
func TestAnnouncementEnds(t *testing.T) {
	v := empty()
	var line []*lock.Entry
	for n := range uint64(10) {
		line = append(line, &lock.Entry{
			ID: view.NumberedID(n), Tenant: "acme", Number: n + 1,
			EnqueuedAt: time.Now().Add(-24 * time.Hour),
			Claims:     []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
		})
	}
	v.Reset(store.Snapshot{})
	for _, e := range line {
		v.Apply(e.Number, []store.Change{{Number: e.Number, Joined: e}})
	}
	soon := line[9]
	watch, err := v.Waits.Attend(soon.ID)
	if err != nil {
		t.Fatal(err)
	}
	v.Apply(11, []store.Change{{Number: 11, Left: line[0].ID, Reason: lock.Released}})
	if st := v.Status(soon.ID, soon.Number); !st.Soon {
		t.Fatalf("its turn is not announced: %+v", st)
	}
	watch.End()
	if st := v.Status(soon.ID, soon.Number); st.Soon {
		t.Error("its turn is announced to nobody")
	}
}

// TestRefusalIsOfOneEntry: an entry of an idempotency key is taken back because its mode
// does not agree, while a request waits for it, and the key's next one is released. It was
// not refused.
func TestRefusalIsOfOneEntry(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{})
	alone := lock.Claim{Name: "a", Mode: lock.Exclusive}
	unit := lock.Claim{Name: "a", Mode: lock.Semaphore, Limit: 2, Permits: 1}
	in := func(id lock.ID, number uint64, claim lock.Claim) store.Change {
		return store.Change{Number: number, Joined: &lock.Entry{
			ID: id, Tenant: "acme", Number: number, EnqueuedAt: time.Now(),
			WaitUntil: time.Now().Add(time.Hour),
			Claims:    []lock.Claim{claim},
		}}
	}
	out := func(id lock.ID, number uint64, why lock.Reason) store.Change {
		return store.Change{Number: number, Left: id, Reason: why}
	}
	other, id := view.NumberedID(1), view.NumberedID(2)
	watch, err := v.Waits.Attend(id)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.End()
	v.Apply(3, []store.Change{in(other, 1, alone), in(id, 2, unit), out(id, 3, lock.Withdrawn)})
	if st := v.Status(id, 2); st.State != view.Gone || st.Refused == nil {
		t.Fatalf("the first entry is %+v, want refused", st)
	}
	v.Apply(6, []store.Change{
		out(other, 4, lock.Released), in(id, 5, unit), out(id, 6, lock.Released),
	})
	if st := v.Status(id, 5); st.State != view.Gone || st.Refused != nil ||
		st.Reason != lock.Released {
		t.Errorf("the second entry is %+v, want released", st)
	}
}

// TestOwnTenantIsNobody: the replicas' own entries are no tenant's, and no queue of theirs is the
// longest.
func TestOwnTenantIsNobody(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{})
	for n := range uint64(5) {
		e := locktest.Entry(view.NumberedID(n), n+1, "lock")
		if n < 3 {
			e.Tenant = lock.OwnTenant
		}
		v.Apply(e.Number, []store.Change{{Number: e.Number, Joined: e}})
	}
	if names := v.Lists.TenantNames(); !slices.Equal(names, []string{"t"}) {
		t.Errorf("the tenants are %q", names)
	}
	if n := v.Lists.Deepest(); n != 1 {
		t.Errorf("%d wait for the lock for which most do, want 1", n)
	}
}

// TestHeldCallbackOfSharedWrite: entries that were written together share their number.
func TestHeldCallbackOfSharedWrite(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{})
	var changes []store.Change
	for i := range uint64(3) {
		e := locktest.Entry(view.NumberedID(i), 7, fmt.Sprint("lock-", i))
		e.Async, e.Callback = true, &lock.Callback{URL: "https://example.org/a", Secret: "current"}
		changes = append(changes, store.Change{Number: 7, Joined: e})
	}
	v.Apply(7, changes)
	for _, c := range changes {
		if got := v.Queues.HeldCallback("t", c.Joined.ID); got != c.Joined {
			t.Errorf("of %s the callback is %v", c.Joined.ID, got)
		}
	}
	if got := v.Queues.HeldCallback("other", changes[0].Joined.ID); got != nil {
		t.Errorf("another tenant finds %v", got)
	}
}

// TestOneWriteHappensAtOnce: a write releases a lock and takes back the first waiter, whichever of
// the two comes first in it. The waiter never held, and the second one holds.
func TestOneWriteHappensAtOnce(t *testing.T) {
	for name, order := range map[string][]int{"holder first": {0, 1}, "waiter first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			told := &teller{t: t}
			v := view.New(view.Config{
				Events:  told,
				Wall:    time.Now,
				Refusal: func() error { return nil },
				Fresh:   time.Hour,
			})
			v.Reset(store.Snapshot{})
			ends := []store.Change{
				{Number: 9, Left: view.NumberedID(1), Reason: lock.Released},
				{Number: 9, Left: view.NumberedID(2), Reason: lock.WaitTimeout},
			}
			for n := range uint64(3) {
				e := &lock.Entry{
					ID: view.NumberedID(n + 1), Tenant: "acme", Number: n + 1, EnqueuedAt: time.Now(),
					WaitUntil: time.Now().Add(time.Hour), Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
				}
				v.Apply(e.Number, []store.Change{{Number: e.Number, Joined: e}})
			}
			v.Apply(9, []store.Change{ends[order[0]], ends[order[1]]})
			for _, h := range told.after(8) {
				if h.Entry == view.NumberedID(2) && (h.Held || h.Kind != lock.EventWaitTimeout) {
					t.Errorf("told of the waiter: %+v", h)
				}
			}
			if st := v.Status(view.NumberedID(3), 3); st.State != view.Held {
				t.Errorf("the second waiter: %+v", st)
			}
			if counts, _ := v.Queues.Count(); counts[lock.Exclusive] != (lock.Counts{Held: 1}) {
				t.Errorf("counted %+v", counts)
			}
		})
	}
}
