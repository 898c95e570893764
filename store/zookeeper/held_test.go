package zookeeper

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// tally counts what it is told.
type tally struct{ resets, changes, losses int }

func (c *tally) Reset(store.Snapshot)             { c.resets++ }
func (c *tally) Apply(_ uint64, l []store.Change) { c.changes += len(l) }
func (c *tally) Recall([]store.Ended, bool)       {}
func (c *tally) Lost(error)                       { c.losses++ }

// heldBack returns a feed, and a follower that is told of the past before its view.
func heldBack(t *testing.T, told lastTold) (*feed, *follower, *tally) {
	t.Helper()
	s := newStore(Config{})
	t.Cleanup(s.stop)
	c := &tally{}
	f := &follower{f: c, told: told, begun: make(chan struct{}, 1)}
	s.feed.number, s.feed.current = 100, true
	s.feed.add(f)
	return s.feed, f, c
}

// TestHeldBackHasABound: a follower for whom too much would be held back begins with what there is,
// and what is read of the past ends. What does not happen takes no room.
func TestHeldBackHasABound(t *testing.T) {
	feed, f, c := heldBack(t, lastTold{number: 50})
	ctx, _, h := f.attend(t.Context())
	if h == nil || c.resets != 0 {
		t.Fatal("the follower is not held back")
	}
	for range 1000 {
		f.apply(feed, retold{to: feed.told()})
	}
	if len(h.calls) != 1 {
		t.Errorf("%d calls are held back in which nothing happened, want 1", len(h.calls))
	}
	one := retold{to: feed.told(), changes: make([]store.Change, 1), bytes: maxHeld / 4}
	for range 3 {
		f.apply(feed, one)
	}
	if c.resets != 0 || ctx.Err() != nil {
		t.Fatal("it begins before there is too much")
	}
	f.apply(feed, one)
	if c.resets != 1 || c.changes != 0 || ctx.Err() == nil || !f.behind.IsZero() {
		t.Errorf("with too much it has begun %d times, was told %d changes, and the past is read: %t, since %v", c.resets, c.changes, ctx.Err() == nil, f.behind)
	}
	f.apply(feed, one)
	if c.changes != 1 || f.during(h, func() { t.Error("it is told what was held back") }) {
		t.Errorf("from there on it was told %d changes, want 1", c.changes)
	}
}

// TestHeldBackUntilTold: what happens while the past is told is told after it.
func TestHeldBackUntilTold(t *testing.T) {
	feed, f, c := heldBack(t, lastTold{number: 50})
	_, v, h := f.attend(t.Context())
	one := retold{to: feed.told(), changes: make([]store.Change, 1)}
	f.apply(feed, one)
	if err := f.recall(v, nil, 0, true); !errors.Is(err, errAnotherView) {
		t.Errorf("ends are recalled before there is a view: %v", err)
	}
	f.apply(feed, one)
	if f.release(h); c.changes != 2 || f.held != nil || !f.behind.IsZero() {
		t.Errorf("%d changes are told, want 2; held back: %t, behind since %v", c.changes, f.held != nil, f.behind)
	}
	f.apply(feed, one)
	if c.changes != 3 {
		t.Errorf("%d changes are told, want 3", c.changes)
	}
	f.lose(errEnded)
	if f.mu.Lock(); f.told.number != 100 || c.losses != 1 {
		t.Errorf("it was told up to %d, and of %d losses", f.told.number, c.losses)
	}
	f.mu.Unlock()
}

// TestWhatLeadsOn: a follower goes on only in the past that it was told.
func TestWhatLeadsOn(t *testing.T) {
	of := func(id lock.ID) *record { return &record{Changes: []change{{ID: id}}} }
	was := lastTold{number: 50, placed: true, next: 5, last: &written{n: 4, zxid: 40, record: of("a")}}
	to := lastTold{number: 100, placed: true, next: 9}
	last := written{n: 4, zxid: 40, record: of("a")}
	for name, change := range map[string]func(was, to *lastTold, last *written){
		"numbers went back":           func(_, to *lastTold, _ *written) { to.number = 49 },
		"another floor":               func(_, to *lastTold, _ *written) { to.floor = 10 },
		"below the floor":             func(was, to *lastTold, _ *written) { was.placed, to.floor = false, 50 },
		"another log":                 func(_, to *lastTold, _ *written) { to.epoch = 1 },
		"a shorter log":               func(_, to *lastTold, _ *written) { to.next = 4 },
		"another record":              func(_, _ *lastTold, last *written) { last.n = 5 },
		"none":                        func(_, _ *lastTold, last *written) { *last = written{n: -1} },
		"the record is of later":      func(_, _ *lastTold, last *written) { last.zxid = 41 },
		"the record says another":     func(_, _ *lastTold, last *written) { last.record = of("b") },
		"it was not told, nor begins": func(was, _ *lastTold, last *written) { was.last, last.n = nil, 3 },
	} {
		was, to, last := was, to, last
		change(&was, &to, &last)
		if was.leads(to) == nil && was.follows(last) == nil {
			t.Errorf("%s: it goes on", name)
		}
	}
	for name, err := range map[string]error{
		"it goes on": errors.Join(was.leads(to), was.follows(last)),
		"folded":     was.follows(written{n: 4, zxid: 40}),
		"resumed":    errors.Join(lastTold{number: 50}.leads(to), lastTold{number: 50}.follows(written{n: -1})),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatIsNotTold: a feed does not go on over too much, nor in a store that may have lost its past. One
// that is resumed may have more to tell.
func TestWhatIsNotTold(t *testing.T) {
	feed, f, _ := heldBack(t, lastTold{number: 50})
	by := &teller{reader: feed.reader}
	_, _, h := f.attend(t.Context())
	changes := make([]change, maxInterrupted+1)
	for i := range changes {
		changes[i].Notice = &store.NoticeValue{}
	}
	records := func(n int) []written {
		return []written{{n: 5, zxid: 60, record: &record{Changes: changes[:n]}}}
	}
	tell := func(placed bool, n int) bool {
		_, err := by.pastOf(h, lastTold{number: 50, placed: placed}, records(n), written{n: 4})
		return err == nil
	}
	if !tell(true, maxInterrupted) || tell(true, maxInterrupted+1) || !tell(false, maxInterrupted+1) {
		t.Errorf("over %d changes an interrupted feed goes on: %t, over one more: %t, and a resumed one: %t",
			maxInterrupted, tell(true, maxInterrupted), tell(true, maxInterrupted+1), tell(false, maxInterrupted+1))
	}
	by.trust.Meet(&store.NewerFormError{Form: store.Form + 1})
	if tell(true, 1) {
		t.Error("it goes on where nothing may be granted")
	}
}

// TestNotForEver: a feed that does not catch up begins with what there is.
func TestNotForEver(t *testing.T) {
	feed, f, _ := heldBack(t, lastTold{number: 50})
	by := &teller{reader: feed.reader, chores: &connector{ctx: t.Context(), changed: make(chan struct{})}}
	_, _, h := f.attend(t.Context())
	over, end := context.WithCancel(t.Context())
	end()
	for behind, want := range map[time.Duration]bool{0: false, resumeTime + time.Second: true} {
		_, err := by.earlier(over, h, f.told, time.Now().Add(-behind))
		if errors.Is(err, errUntold) != want {
			t.Errorf("behind for %v: %v", behind, err)
		}
	}
}

// TestBehindOverAllViews: a follower is behind from its first view on that it is to be told the past of, however often it gets
// another one.
func TestBehindOverAllViews(t *testing.T) {
	feed, f, _ := heldBack(t, lastTold{number: 50})
	since := time.Now().Add(-time.Minute)
	f.behind = since
	f.lose(errEnded)
	if f.begin(feed); !f.behind.Equal(since) {
		t.Errorf("it is behind since %v, and not since %v", f.behind, since)
	}
}

// TestLastToldIsKept: where nothing happens what was told last stays that, also for a feed that has not read it.
func TestLastToldIsKept(t *testing.T) {
	last := &written{n: 4}
	_, f, _ := heldBack(t, lastTold{number: 50, next: 5, last: last})
	if f.tell(retold{to: lastTold{number: 60, next: 5}}); f.told.last != last || f.told.number != 60 {
		t.Errorf("it was told %+v last", f.told)
	}
	if f.tell(retold{to: lastTold{number: 70, next: 6}}); f.told.last != nil {
		t.Errorf("after a record that it does not know it was told %+v last", f.told)
	}
}

// TestPastLeadsToTheView: what happened before a view is told up to that, and once. The view is of no other floor than when
// it was made.
func TestPastLeadsToTheView(t *testing.T) {
	feed, f, _ := heldBack(t, lastTold{number: 50})
	by := &teller{reader: feed.reader}
	_, _, h := f.attend(t.Context())
	h.first.Notices = []*lock.Notice{{Number: 50}, {Number: 51}}
	records := []written{{n: 5, zxid: 60, record: &record{Changes: []change{{Notice: &store.NoticeValue{}}}}}}
	p, err := by.pastOf(h, f.told, records, written{n: 4})
	if err != nil {
		t.Fatal(err)
	}
	if last := p.all[len(p.all)-1]; last.to != h.at {
		t.Errorf("it is told up to %+v, and its view is at %+v", last.to, h.at)
	}
	if n := p.was.Notices; len(n) != 1 || n[0].Number != 50 {
		t.Errorf("%d notices were there before, of which one was told since", len(n))
	}
	h.at.floor++
	if _, err := by.pastOf(h, f.told, records, written{n: 4}); !errors.Is(err, errMeta) {
		t.Errorf("of a view by another floor it is told: %v", err)
	}
}

// TestPastIsToldAtAPace: the past is not told faster than it can be filed.
func TestPastIsToldAtAPace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		feed, f, c := heldBack(t, lastTold{number: 50})
		by := &teller{reader: feed.reader}
		_, _, h := f.attend(t.Context())
		p, start := &past{all: slices.Repeat([]retold{{changes: make([]store.Change, 100)}}, 100)}, time.Now()
		by.tellAll(t.Context(), f, h, p)
		if took := time.Since(start); c.changes != 10_000 || took < 100*time.Millisecond {
			t.Errorf("%d changes are told in %v", c.changes, took)
		}
	})
}
