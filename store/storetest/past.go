package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func pastCases() []testCase {
	return []testCase{
		{
			name:  "past/what expired is told to who starts later",
			run:   pastExpired,
			alone: true, // a compaction before the record leaves only the reason
		},
		{name: "past/what was removed is told to who starts later", run: pastRemoved},
		{name: "past/a set that is too large is remembered by its id", run: pastLarge},
	}
}

// shown is what a client may learn of an ended entry.
func shown(e *lock.Entry) *lock.Entry {
	return &lock.Entry{
		ID: e.ID, Tenant: e.Tenant, Claims: e.Claims, Set: e.Set, Holder: e.Holder, Named: e.Named,
		TTL: e.TTL, EnqueuedAt: e.EnqueuedAt, WaitUntil: e.WaitUntil, Number: e.Number,
	}
}

// various are entries of every kind, with more than a client may learn.
func (t *trial) various() []*lock.Entry {
	plain, semaphore, set, kept := t.draft("a"), t.repeatable("b"), t.draft("c", "d"), t.kept("e", "f")
	plain.WaitUntil = time.Time{}
	semaphore.Claims[0] = permits("b", 2, 3)
	set.Claims[1].Mode = lock.Shared
	for _, e := range []*lock.Entry{semaphore, set} {
		e.Named, e.Holder, e.Metadata = true, "worker <7> \u5de5", map[string]string{"job": "secret"}
	}
	return []*lock.Entry{plain, semaphore, set, kept}
}

func pastRemoved(t *trial) {
	var want []*lock.Entry
	for i, e := range t.various() {
		placed := t.enqueue(t.client(i), e)
		t.remove(t.client(i/2), placed, reasons()[i%len(reasons())])
		want = append(want, placed)
	}
	t.wantPast(t.Reopen(t.T), want)
}

func pastExpired(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	var want []*lock.Entry
	for i, e := range t.various() {
		e.TTL = t.MinTTL
		want = append(want, t.enqueue(t.client(i), e))
	}
	for _, e := range want {
		for _, f := range feeds {
			if !f.await(t.MinTTL+t.Late, func() bool { return !f.has(e.ID) }) {
				t.Fatalf("%s has not expired", e.ID)
			}
		}
	}
	t.eventually(t.Late, "the ends are recorded", func() bool {
		return len(t.follow(t.Reopen(t.T)).state().ended) == len(want)
	})
	t.wantPast(t.Reopen(t.T), want)
}

// wantPast compares the ends that a client reports with the entries. It must report nothing that
// is for their clients alone.
func (t *trial) wantPast(s store.Store, want []*lock.Entry) {
	t.Helper()
	ended := map[lock.ID]store.Ended{}
	for _, e := range t.follow(s).state().ended {
		ended[e.ID] = e
	}
	for _, e := range want {
		was := ended[e.ID].Was
		if diff := diff(shown(e), was.Entry(e.Tenant, e.ID)); diff != "" {
			t.Errorf("of an entry that ended (-want +got):\n%s", diff)
		}
		if strings.Contains(string(was.Text), "secret") ||
			strings.Contains(string(was.Text), "example.org") {
			t.Errorf("it tells too much: %s", was.Text)
		}
	}
}

func pastLarge(t *trial) {
	var names []string
	for i := range lock.MaxSetSize {
		names = append(names, fmt.Sprintf("%02d%s", i, strings.Repeat("x", 190)))
	}
	e := t.enqueue(t.A, t.draft(names...))
	t.remove(t.A, e, lock.Revoked)
	ended := t.follow(t.Reopen(t.T)).state().ended
	if len(ended) != 1 || ended[0].ID != e.ID || ended[0].Reason != lock.Revoked ||
		len(ended[0].Was.Text) > store.MaxPast {
		t.Errorf("remembered as %+v", ended)
	}
}
