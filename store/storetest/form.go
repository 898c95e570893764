package storetest

import (
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// olderForm is that of a version that knows no entries which the replicas keep.
const olderForm = 1

func formCases() []testCase {
	return []testCase{
		{name: "form/what an entry has is kept", run: formKept},
		{name: "form/an older version stops granting when it would misread", run: formOlder},
		{name: "form/what an older version understands does not stop it", run: formPlain},
		{name: "form/a feed that understands it goes on", run: formGoesOn, alone: true},
	}
}

const aTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// kept returns an entry that the service keeps, with all that such a one can have.
func (t *trial) kept(locks ...string) *lock.Entry {
	e := t.draft(locks...)
	e.Async, e.Trace = true, aTrace
	e.Callback = &lock.Callback{URL: "https://example.org/told?job=<7>", Secret: "callback-1"}
	within := 90 * time.Second
	e.AskWithin = &within
	return e
}

// formKept reads an entry of the newest form in queues and feeds.
func formKept(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	one, set := t.enqueue(t.A, t.kept("a")), t.enqueue(t.B, t.kept("a", "b"))
	if !one.Async || one.Callback == nil || one.Trace != aTrace || one.AskWithin == nil {
		t.Errorf("Enqueue = %+v", one)
	}
	for i := range 2 {
		t.wantQueue(t.client(i), t.ref("a"), one, set)
		t.wantQueue(t.client(i), t.ref("b"), set)
	}
	late := t.Reopen(t.T)
	t.wantQueue(late, t.ref("a"), one, set)
	t.wantSame(append(feeds, t.follow(late))...)
}

// formPlain writes what every version understands, and what it can pass over.
func formPlain(t *trial) {
	older := t.openOlder()
	t.follow(older)
	traced := t.draft("a")
	traced.Trace, traced.AskWithin = aTrace, new(time.Duration)
	first, second := t.enqueue(t.A, traced), t.enqueue(older, t.draft("a"))
	t.wantQueue(older, t.ref("a"), first, second)
	if err := older.Refusal(); err != nil {
		t.Errorf("it refuses: %v", err)
	}
	t.openOlder()
}

// formGoesOn follows the store through the first entry of a new form that it ever has.
// The feed reports no new view, as it reports no entry that joined and left in it.
func formGoesOn(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	before := t.enqueue(t.A, t.draft("a"))
	kept, set := t.enqueue(t.B, t.kept("a")), t.enqueue(t.A, t.kept("a", "b"))
	t.remove(t.A, before, lock.Released)
	t.settle(feeds...)
	for i, f := range feeds {
		got := f.state()
		if !got.whole() || got.losses > 0 || got.joined[kept.ID] != 1 || got.joined[set.ID] != 1 {
			t.Errorf(
				"feed %d listed %d times and was lost %d times; "+
					"it told %d and %d times of the entries that joined",
				i,
				got.resets,
				got.losses,
				got.joined[kept.ID],
				got.joined[set.ID],
			)
		}
	}
	if _, _, err := t.B.Enqueue(t.ctx, t.draft("a")); err != nil {
		t.Errorf("Enqueue after it = %v", err)
	}
}

// formOlder has a client of an earlier version beside others when an entry is written
// that it would misread.
func formOlder(t *trial) {
	older := t.openOlder()
	olderFeed := t.follow(older)
	renewed, removed := t.enqueue(older, t.draft("a")), t.enqueue(older, t.draft("b"))
	kept := t.enqueue(t.A, t.kept("a", "b"))
	t.eventually(t.Late, "the older one knows, which is asked for nothing", func() bool {
		return errors.Is(older.Refusal(), store.ErrNewerForm)
	})
	for _, names := range [][]string{{"a"}, {"c"}} {
		_, _, err := older.Enqueue(t.ctx, t.draft(names...))
		if t.wantUnavailable("Enqueue by an older version", err) || !errors.Is(err, store.ErrNewerForm) {
			t.Errorf("Enqueue by an older version = %v", err)
		}
	}
	t.wantQueue(t.B, t.ref("a"), renewed, kept)
	t.wantQueue(t.B, t.ref("c"))
	if err := older.Renew(t.ctx, renewed); err != nil {
		t.Errorf("the older version cannot renew: %v", err)
	}
	t.remove(older, removed, lock.Released)
	if entries := t.queue(older, t.ref("a")); len(entries) != 2 || entries[1].ID != kept.ID ||
		entries[1].TTL != lock.MaxTTL {
		t.Errorf("the older version sees %v", entries)
	}
	if !olderFeed.await(
		2*t.Late,
		func() bool { return olderFeed.current && olderFeed.has(kept.ID) && !olderFeed.has(removed.ID) },
	) {
		t.Error("the older version's feed does not go on")
	}
	t.wantQueue(t.A, t.ref("b"), kept)
	t.enqueue(t.B, t.draft("d"))
	if _, err := t.OpenOlder(t.T, olderForm); !errors.Is(err, store.ErrNewerForm) {
		t.Errorf("an older version starts: %v", err)
	}
	for _, s := range []store.Store{t.A, t.B, t.Reopen(t.T)} {
		if err := s.Refusal(); err != nil {
			t.Errorf("one that understands it refuses: %v", err)
		}
	}
	t.remove(t.B, kept, lock.Released)
	if !errors.Is(older.Refusal(), store.ErrNewerForm) {
		t.Error("the older version grants again, though there may be another such entry at any moment")
	}
}

func (t *trial) openOlder() store.Store {
	t.Helper()
	s, err := t.OpenOlder(t.T, olderForm)
	if err != nil {
		t.Fatalf("open as an older version: %v", err)
	}
	return s
}
