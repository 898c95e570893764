package storetest

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func keyCases() []testCase {
	return []testCase{
		{name: "enqueue/written tells who wrote", run: writtenOnce},
		{name: "enqueue/a used-up key is refused with its reason", run: usedUpKey},
		{name: "enqueue/the key of an entry that expired is used up", run: expiredKey},
		{name: "enqueue/the key of a withdrawn entry is free", run: withdrawnKey},
		{
			name: "enqueue/a withdrawal does not hide that an entry of the key expired",
			run:  withdrawnAfterExpiry,
		},
		{name: "enqueue/a key is one entry whatever its locks are", run: keyOfOtherLocks},
		{name: "enqueue/late duplicates of a key find it used up", run: lateDuplicates},
	}
}

// writtenOnce makes several calls write one id at once. One of them has written it, and the later
// ones have not.
func writtenOnce(t *trial) {
	for range 20 {
		draft := t.repeatable("a")
		var written atomic.Int64
		together(4, func(i int) {
			_, mine, err := t.client(i).Enqueue(t.ctx, clone(draft))
			if err != nil {
				t.Errorf("Enqueue: %v", err)
			} else if mine {
				written.Add(1)
			}
		})
		e, again, err := t.B.Enqueue(t.ctx, clone(draft))
		if err != nil || again || written.Load() != 1 {
			t.Fatalf(
				"%d calls say that they wrote the entry, want 1; one later says so: %t, %v", written.Load(),
				again, err,
			)
		}
		t.remove(t.A, e, lock.Withdrawn)
	}
	if _, mine, err := t.B.Enqueue(t.ctx, t.draft("a")); err != nil || !mine {
		t.Errorf("a fresh entry was written: %t, %v", mine, err)
	}
}

// usedUpKey repeats an entry that ended, through every client.
func usedUpKey(t *trial) {
	drafts := map[lock.Reason][]*lock.Entry{}
	for _, why := range []lock.Reason{lock.Released, lock.Revoked, lock.WaitTimeout} {
		drafts[why] = []*lock.Entry{t.repeatable("a"), t.repeatable("a", "b", "c")}
		for i, draft := range drafts[why] {
			t.remove(t.client(i+1), t.enqueue(t.client(i), draft), why)
		}
	}
	late := t.Reopen(t.T)
	for why, all := range drafts {
		for _, draft := range all {
			t.wantUsedUp(t.A, draft, why)
			t.wantUsedUp(t.B, draft, why)
			t.wantUsedUp(late, draft, why)
		}
	}
	t.wantQueue(t.A, t.ref("a"))
	t.enqueue(t.A, t.repeatable("a")) // another key is free
	e := drafts[lock.Released][0]
	foreign := clone(e)
	foreign.Tenant = "globex"
	t.enqueue(t.B, foreign) // and another tenant's
}

func (t *trial) wantUsedUp(s store.Store, draft *lock.Entry, why lock.Reason) {
	t.Helper()
	placed, written, err := s.Enqueue(t.ctx, clone(draft))
	if e := t.typed("Enqueue of a used-up key", err); e == nil || e.Code != lock.Lost ||
		e.Reason != why || e.OutcomeUnknown {
		t.Errorf(
			"a used-up key gives %v, written %t, %v; want %s, %s", placed, written, err, lock.Lost, why,
		)
	}
}

// expiredKey repeats an entry that expired. That counts from its record.
func expiredKey(t *trial) {
	a := t.follow(t.A)
	all := []leased{t.lease(t.repeatable("a"), t.MinTTL), t.lease(t.repeatable("b", "c"), t.MinTTL)}
	for _, l := range all {
		t.wantExpiry(a, l)
	}
	t.eventually(t.Late+t.CallLimit, "the record of the expiries", func() bool {
		late, stop := t.followUntil(t.B)
		defer stop()
		return late.recalls(all[0].Entry) && late.recalls(all[1].Entry)
	})
	for _, l := range all {
		for _, s := range []store.Store{t.A, t.B, t.Reopen(t.T)} {
			t.wantUsedUp(s, l.Entry, lock.Expired)
		}
	}
}

// recalls reports whether the feed learned, as it began, that the entry expired.
func (f *feed) recalls(gone *lock.Entry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.ended {
		if e.ID == gone.ID && e.Tenant == gone.Tenant && e.Reason == lock.Expired {
			return true
		}
	}
	return false
}

// withdrawnAfterExpiry repeats an entry as soon as it has expired, when its key may count as
// new, and takes it back before the expiry is recorded. From the record on the key is used up all
// the same. Of what is taken back while that is written nothing is promised.
func withdrawnAfterExpiry(t *trial) {
	a := t.follow(t.A)
	drafts, sure := make([]leased, 8), []leased(nil)
	for i := range drafts {
		drafts[i] = t.lease(t.repeatable("a"), t.MinTTL)
	}
	for _, l := range drafts {
		t.wantExpiry(a, l)
		again, written, err := t.B.Enqueue(t.ctx, clone(l.Entry))
		if err == nil && written {
			t.remove(t.B, again, lock.Withdrawn)
		}
		if !written || !t.recorded(l) {
			sure = append(sure, l)
		}
	}
	if len(sure) == 0 {
		t.Fatal("each expiry was recorded before its key was free again")
	}
	t.eventually(
		t.Late+t.CallLimit, "the record of the expiries", func() bool { return t.recorded(drafts...) },
	)
	for _, l := range sure {
		t.wantUsedUp(t.A, l.Entry, lock.Expired)
		t.wantUsedUp(t.B, l.Entry, lock.Expired)
	}
}

// recorded reports whether a client that lists again learns that all of these expired.
func (t *trial) recorded(drafts ...leased) bool {
	late, stop := t.followUntil(t.B)
	defer stop()
	return !slices.ContainsFunc(drafts, func(l leased) bool { return !late.recalls(l.Entry) })
}

// withdrawnKey repeats an entry that was taken back. No client learned of it, so its key
// was not used.
func withdrawnKey(t *trial) {
	for i, draft := range []*lock.Entry{t.repeatable("a"), t.repeatable("a", "b")} {
		first := t.enqueue(t.client(i), draft)
		t.remove(t.client(i+1), first, lock.Withdrawn)
		again, written, err := t.client(i).Enqueue(t.ctx, clone(draft))
		if err != nil || !written || again.Number <= first.Number {
			t.Fatalf("the key of a withdrawn entry: %+v, written %t, %v", again, written, err)
		}
		t.remove(t.A, again, lock.Released)
		t.wantUsedUp(t.B, draft, lock.Released)
	}
}

// lateDuplicates has several duplicates of a key arrive while its entry is released.
// Each finds the entry or its end, and none writes another one.
func lateDuplicates(t *trial) {
	for range 20 {
		draft := t.repeatable("a")
		first := t.enqueue(t.A, draft)
		together(5, func(i int) {
			if i == 0 {
				if err := t.A.Remove(t.ctx, first, lock.Released); err != nil {
					t.Errorf("Remove: %v", err)
				}
				return
			}
			e, written, err := t.client(i).Enqueue(t.ctx, clone(draft))
			joined := err == nil && !written && e.Number == first.Number
			if !joined && !errors.Is(err, lock.Lost) {
				t.Errorf("a duplicate is answered with %+v, written %t, %v", e, written, err)
			}
		})
		t.wantUsedUp(t.A, draft, lock.Released)
		t.wantUsedUp(t.B, draft, lock.Released)
		t.wantQueue(t.B, t.ref("a"))
	}
}

// keyOfOtherLocks repeats a key for other locks, while its entry is there and later.
func keyOfOtherLocks(t *trial) {
	draft := t.repeatable("a", "b")
	first := t.enqueue(t.A, draft)
	for i, names := range [][]string{{"b", "c"}, {"c"}, {"a", "b", "c"}} {
		other := t.repeatable(names...)
		other.ID = draft.ID
		if diff := diff(first, t.enqueue(t.client(i), other)); diff != "" {
			t.Errorf("the key is not that of the first entry (-want +got):\n%s", diff)
		}
		t.wantQueue(t.A, t.ref("c"))
	}
	t.remove(t.B, first, lock.Released)
	other := t.repeatable("c")
	other.ID = draft.ID
	t.wantUsedUp(t.A, other, lock.Released)
	t.wantQueue(t.B, t.ref("c"))
}
