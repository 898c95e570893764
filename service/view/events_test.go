package view_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// heard is what a replica tells of its events, without what only it saw.
type heard struct {
	ID     string
	Kind   lock.EventKind
	Entry  lock.ID
	Reason lock.Reason
	Held   bool
	Locks  string // that it is about
}

// teller keeps the events of a view since the last list.
type teller struct {
	nobody
	t     *testing.T
	began uint64
	last  lock.EventID
	told  []heard
}

func (l *teller) Begin(number uint64) { l.began, l.last, l.told = number, lock.EventID{}, nil }

func (l *teller) Add(e lock.Event) {
	if e.ID.Compare(l.last) <= 0 {
		l.t.Errorf("%v comes after %v", e.ID, l.last)
	}
	l.last = e.ID
	told := heard{e.ID.String(), e.Kind, e.Entry.ID, e.Reason, e.Held, ""}
	if e.Ask != nil {
		told.Locks = fmt.Sprint(e.Entry.Claims, e.Ask.Since.UnixMilli(), e.Ask.Within)
	}
	l.told = append(l.told, told)
}

// after returns the events of later writes than number.
func (l *teller) after(number uint64) []heard {
	i := slices.IndexFunc(l.told, func(h heard) bool {
		id, err := lock.ParseEventID(h.ID)
		return err == nil && id.Number > number
	})
	if i < 0 {
		return nil
	}
	return l.told[i:]
}

// history is what a store tells in the course of time: the changes of each write.
type history struct {
	*rand.Rand
	number  uint64
	writes  [][]store.Change
	entries []*lock.Entry // that are there, by their numbers
	all     uint64
}

// write makes the next write: several entries leave, and several come that have no lock in
// common.
func (h *history) write() []store.Change {
	h.number += 1 + h.Uint64N(3)
	var changes []store.Change
	taken := map[string]bool{}
	for range 1 + h.IntN(4) {
		if len(h.entries) > 0 && h.IntN(2) == 0 {
			changes = append(changes, h.leave())
		} else if e := h.join(taken); e != nil {
			changes = append(changes, store.Change{Number: h.number, Joined: e})
		}
	}
	h.writes = append(h.writes, changes)
	return changes
}

func (h *history) leave() store.Change {
	reasons := []lock.Reason{
		lock.Released, lock.Expired, lock.Revoked, lock.WaitTimeout, lock.Withdrawn, lock.Withdrawn,
	}
	i := h.IntN(len(h.entries))
	e := h.entries[i]
	h.entries = slices.Delete(h.entries, i, i+1)
	return store.Change{Number: h.number, Left: e.ID, Reason: reasons[h.IntN(len(reasons))]}
}

func (h *history) join(taken map[string]bool) *lock.Entry {
	e := &lock.Entry{
		ID: view.NumberedID(h.all), Tenant: "acme", Holder: fmt.Sprint("w", h.IntN(4)),
		Named: h.IntN(4) > 0, Number: h.number,
	}
	if h.all++; h.IntN(4) > 0 {
		e.WaitUntil = time.Now().Add(time.Hour)
	}
	if h.IntN(4) == 0 {
		e.AskWithin = new(time.Duration)
	}
	e.OnlyNewest = h.IntN(3) == 0
	for range 1 + h.IntN(3) {
		name := string(rune('a' + h.IntN(5)))
		if taken[name] {
			continue
		}
		taken[name] = true
		c := lock.Claim{Name: name, Mode: lock.Exclusive}
		switch h.IntN(10) {
		case 0, 1:
			c.Mode = lock.Shared
		case 2:
			c.Mode, c.Limit, c.Permits = lock.Semaphore, 2+h.IntN(2), 1+h.IntN(2)
		}
		e.Claims = append(e.Claims, c)
	}
	if len(e.Claims) == 0 {
		return nil
	}
	lock.Canonical(e.Claims)
	h.entries = append(h.entries, e)
	return e
}

// list returns all entries. The store's order of entries with one number is not known.
func (h *history) list() store.Snapshot {
	s := store.Snapshot{Number: h.number, Entries: slices.Clone(h.entries)}
	h.Shuffle(
		len(s.Entries), func(i, j int) { s.Entries[i], s.Entries[j] = s.Entries[j], s.Entries[i] },
	)
	slices.SortStableFunc(s.Entries, func(a, b *lock.Entry) int {
		switch {
		case a.Number < b.Number:
			return -1
		case a.Number > b.Number:
			return 1
		}
		return 0
	})
	return s
}

func listener(t *testing.T) (*view.View, *teller) {
	l := &teller{t: t}
	return view.New(
		view.Config{Events: l, Wall: time.Now, Refusal: func() error { return nil }, Fresh: time.Hour},
	), l
}

// TestReplicasTellTheSameEvents: however the feed cuts its changes, and from whatever list
// on, replicas tell the same events with the same ids.
func TestReplicasTellTheSameEvents(t *testing.T) {
	kinds := map[lock.EventKind]int{}
	for seed := range uint64(200) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 1))}
		each, toldEach := listener(t)
		cut, toldCut := listener(t)
		listed, toldListed := listener(t)
		for _, v := range []*view.View{each, cut, listed} {
			v.Reset(store.Snapshot{})
		}
		var run []store.Change
		for range 60 {
			changes := h.write()
			each.Apply(h.number, changes)
			listed.Apply(h.number, changes)
			if run = append(run, changes...); h.IntN(5) == 0 {
				cut.Apply(h.number, run)
				run = nil
			}
			if h.IntN(20) == 0 {
				if h.IntN(2) == 0 { // a replica that has just started
					listed, toldListed = listener(t)
				}
				listed.Reset(h.list())
			}
		}
		cut.Apply(h.number, run)
		if diff := cmp.Diff(toldEach.told, toldCut.told); diff != "" {
			t.Fatalf("seed %d: the cut of the feed changes events (-each write +several):\n%s", seed, diff)
		}
		if diff := cmp.Diff(toldEach.after(toldListed.began), toldListed.told); diff != "" {
			t.Fatalf(
				"seed %d: a list at %d changes later events (-followed +listed):\n%s", seed, toldListed.began,
				diff,
			)
		}
		for _, e := range toldEach.told {
			kinds[e.Kind]++
		}
	}
	if want := slices.Sorted(slices.Values(lock.EventKinds())); !slices.Equal(
		slices.Sorted(maps.Keys(kinds)), want,
	) {
		t.Errorf("the histories had %v, want all of %v", kinds, want)
	}
	t.Log(kinds)
}

// TestEventsOfOneWrite: an end comes before the grants that follow from it, and those are in
// the order of the queue; a set makes one event. An entry that leaves in the write did not
// hold because of it.
func TestEventsOfOneWrite(t *testing.T) {
	v, l := listener(t)
	v.Reset(store.Snapshot{Number: 10})
	entry := func(number uint64, mode lock.Mode, names ...string) *lock.Entry {
		e := &lock.Entry{
			ID: view.NumberedID(number), Tenant: "acme", Number: number,
			WaitUntil: time.Now().Add(time.Hour), Set: len(names) > 1,
		}
		for _, name := range names {
			e.Claims = append(e.Claims, lock.Claim{Name: name, Mode: mode})
		}
		return e
	}
	first, try := entry(11, lock.Exclusive, "a", "b"), entry(12, lock.Exclusive, "a")
	readers := []*lock.Entry{
		entry(13, lock.Shared, "a", "b"), entry(14, lock.Shared, "a"), entry(15, lock.Shared, "b"),
	}
	try.WaitUntil = time.Time{}
	var changes []store.Change
	for _, e := range append([]*lock.Entry{first, try}, readers...) {
		changes = append(changes, store.Change{Number: e.Number, Joined: e})
	}
	changes = append(changes, store.Change{
		Number: 16, Left: try.ID, Reason: lock.Withdrawn,
	}, store.Change{Number: 20, Left: first.ID, Reason: lock.Released},
		store.Change{Number: 20, Left: readers[1].ID, Reason: lock.Withdrawn})
	v.Apply(20, changes)
	want := []heard{
		{"11-1", lock.EventAcquired, first.ID, "", true, ""},
		{"13-1", lock.EventEnqueued, readers[0].ID, "", false, ""},
		{"14-1", lock.EventEnqueued, readers[1].ID, "", false, ""},
		{"15-1", lock.EventEnqueued, readers[2].ID, "", false, ""},
		{"20-1", lock.EventReleased, first.ID, lock.Released, true, ""},
		{"20-2", lock.EventAcquired, readers[0].ID, "", true, ""},
		{"20-3", lock.EventAcquired, readers[2].ID, "", true, ""},
		{"20-4", lock.EventReleased, readers[1].ID, lock.Withdrawn, false, ""},
	}
	if diff := cmp.Diff(want, l.told); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
}

// TestEventsOfANumberThatCameAgain: a store that lost its past gives numbers again. What
// happens then has the names that a replica gives which did not know the past.
func TestEventsOfANumberThatCameAgain(t *testing.T) {
	l := &teller{t: t}
	v := view.New(view.Config{Events: l, Wall: time.Now, Refusal: func() error { return nil }})
	e := func(name string) *lock.Entry {
		return &lock.Entry{
			ID: lock.ID("entry-of-" + name), Number: 10, Tenant: "acme", TTL: time.Minute,
			Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
		}
	}
	v.Reset(store.Snapshot{Number: 9})
	v.Apply(10, []store.Change{{Number: 10, Joined: e("x")}, {Number: 10, Joined: e("y")}})
	v.Reset(store.Snapshot{Number: 9})
	v.Apply(10, []store.Change{{Number: 10, Joined: e("z")}})
	if got := l.last.String(); got != "10-1" {
		t.Errorf("the first event is %s, want 10-1", got)
	}
}
