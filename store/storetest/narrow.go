package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// narrowCases are about entries that ask for any of their locks.
func narrowCases() []testCase {
	all := []testCase{
		{name: "narrow/the expiry of a pool's entry frees all its locks", run: narrowExpiry},
		{name: "narrow/of several deciders one wins", run: narrowRace},
		{name: "narrow/leaves the other queues, and keeps its number", run: narrowLeaves},
		{name: "narrow/what is gone is lost, and a later entry with its id is another one", run: narrowGone},
		{name: "narrow/calls with the entry as it was mean the same entry", run: narrowStale},
		{name: "narrow/ends of a pool's entry are remembered with the locks it had", run: narrowPast},
		{name: "narrow/a removal that was decided by a choice not made", run: narrowWhile},
		{name: "narrow/a key finds its entry, and is used once", run: narrowKey},
		{name: "narrow/all of the locks are an ordinary set", run: narrowAll},
		{name: "narrow/is a grant, which a newer version of the server refuses", run: narrowForm},
		{name: "narrow/a feed that begins meanwhile has it", run: narrowSeam},
		{name: "narrow/numbers count the floor", run: narrowFloor, needs: floors},
		{name: "narrow/a feed that begins earlier tells it", run: narrowResumed, needs: earlier, alone: true},
	}
	for _, f := range []Fault{Silent, Deaf, Broken} {
		all = append(all,
			testCase{
				name: "cut/" + string(f) + "/a narrowing that comes late changes nothing",
				run:  func(t *trial) { cutNarrow(t, f) }, needs: cut,
			},
			testCase{
				name: "cut/" + string(f) + "/a feed learns of a narrowing that it missed",
				run:  func(t *trial) { cutNarrowFeed(t, f) }, needs: cut,
			},
		)
	}
	return all
}

// pool returns a new entry that asks for any of the locks, in this order.
func (t *trial) pool(n int, locks ...string) *lock.Entry {
	e := t.draft(locks...)
	e.Set, e.Any = true, n
	if e.Choosing() {
		for _, name := range locks {
			e.Order = append(e.Order, slices.IndexFunc(
				e.Claims, func(c lock.Claim) bool { return c.Name == name },
			))
		}
	}
	return e
}

func (t *trial) poolWithKey(n int, locks ...string) *lock.Entry {
	e := t.pool(n, locks...)
	e.Request = "the same parameters"
	return e
}

// keeping returns the claims of e on the locks.
func keeping(e *lock.Entry, names ...string) (kept []lock.Claim) {
	for _, c := range e.Claims {
		if slices.Contains(names, c.Name) {
			kept = append(kept, c)
		}
	}
	return kept
}

func (t *trial) narrow(s store.Store, e *lock.Entry, names ...string) *lock.Entry {
	t.Helper()
	now, err := s.Narrow(t.ctx, clone(e), keeping(e, names...))
	if err != nil {
		t.Fatalf("Narrow(%s to %v): %v", e.ID, names, err)
	}
	if diff := diff(e.Narrowed(keeping(e, names...)), now); diff != "" {
		t.Errorf("Narrow (-want +got):\n%s", diff)
	}
	return now
}

// narrowRace has deciders choose different locks at once.
func narrowRace(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	names := []string{"a", "b", "c", "d"}
	for i := range 10 {
		e := t.enqueue(t.client(i), t.pool(1, names...))
		got := make([]*lock.Entry, 2*len(names))
		together(len(got), func(i int) {
			var err error
			got[i], err = t.client(i).Narrow(t.ctx, clone(e), keeping(e, names[i/2]))
			if err != nil {
				t.Errorf("Narrow: %v", err)
				got[i] = e
			}
		})
		for _, other := range got[1:] {
			if diff := diff(got[0], other); diff != "" {
				t.Errorf("two deciders get different entries (-first +other):\n%s", diff)
			}
		}
		for _, name := range names {
			if name == got[0].Claims[0].Name {
				t.wantQueue(t.client(i), t.ref(name), got[0])
			} else {
				t.wantQueue(t.client(i), t.ref(name))
			}
		}
		t.wantNarrowed(feeds, e.ID)
		t.remove(t.client(i), got[0], lock.Released)
	}
	t.wantSame(feeds...)
}

// wantNarrowed checks that each feed told once that the entry was narrowed, all at one number.
func (t *trial) wantNarrowed(feeds []*feed, id lock.ID) {
	t.Helper()
	t.settle(feeds...)
	first := uint64(0)
	for i, f := range feeds {
		v := f.state()
		var at []uint64
		for _, c := range v.changes {
			if c.ID == id && c.Narrowed {
				at = append(at, c.Number)
			}
		}
		switch {
		case !v.whole():
		case len(at) != 1 || v.joined[id] > 1 || first != 0 && at[0] != first:
			t.Errorf("feed %d told of the narrowing at %d, another one at %d", i, at, first)
		default:
			first = at[0]
		}
	}
}

// narrowLeaves has entries before and behind a pool's entry in its queues.
func narrowLeaves(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	before := t.enqueue(t.A, t.draft("b"))
	e := t.enqueue(t.B, t.pool(2, "d", "a", "c", "b"))
	t.wantSame(append(feeds, t.follow(t.Reopen(t.T)))...)
	behind := t.enqueue(t.A, t.draft("a", "b", "c", "d"))
	now := t.narrow(t.B, e, "a", "d")
	if now.Number != e.Number || now.Handle != e.Handle || now.Choosing() {
		t.Errorf("narrowed, it is %+v", now)
	}
	for i := range 2 {
		t.wantQueue(t.client(i), t.ref("a"), now, behind)
		t.wantQueue(t.client(i), t.ref("b"), before, behind)
		t.wantQueue(t.client(i), t.ref("c"), behind)
		t.wantQueue(t.client(i), t.ref("d"), now, behind)
		again, err := t.client(i).Narrow(t.ctx, clone(e), keeping(e, "b", "c"))
		if diff := diff(now, again); err != nil || diff != "" {
			t.Errorf("Narrow of what was narrowed: %v (-want +got):\n%s", err, diff)
		}
		again, err = t.client(i).Narrow(t.ctx, clone(now), now.Claims)
		if diff := diff(now, again); err != nil || diff != "" {
			t.Errorf("Narrow of a narrowed entry: %v (-want +got):\n%s", err, diff)
		}
	}
	t.wantNarrowed(feeds, e.ID)
	t.wantSame(append(feeds, t.follow(t.Reopen(t.T)))...)
	t.remove(t.A, before, lock.Released)
	t.remove(t.A, now, lock.Released)
	t.wantSame(append(feeds, t.follow(t.Reopen(t.T)))...)
	t.wantQueue(t.B, t.ref("d"), behind)
	if diff := diff(feeds[0].state().changes, feeds[1].state().changes); diff != "" &&
		feeds[0].state().whole() && feeds[1].state().whole() {
		t.Errorf("two feeds tell different changes (-first +other):\n%s", diff)
	}
}

func narrowGone(t *trial) {
	e := t.enqueue(t.A, t.pool(1, "a", "b"))
	t.remove(t.A, e, lock.Released)
	for i := range 2 {
		_, err := t.client(i).Narrow(t.ctx, e, keeping(e, "a"))
		t.wantLost("Narrow of a removed entry", err)
	}
	draft := t.poolWithKey(1, "a", "b")
	first := t.enqueue(t.A, draft)
	t.remove(t.B, first, lock.Withdrawn)
	second := t.enqueue(t.B, draft)
	for i := range 2 {
		_, err := t.client(i).Narrow(t.ctx, first, keeping(e, "a"))
		t.wantLost("Narrow of an earlier entry with the id", err)
	}
	t.wantQueue(t.A, t.ref("a"), second)
	t.wantQueue(t.A, t.ref("b"), second)
	t.narrow(t.A, second, "b")
}

// narrowStale renews and removes entries as callers know them that have not seen the narrowing.
func narrowStale(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	stale := func(locks ...string) (e *lock.Entry) {
		e = t.enqueue(t.A, t.poolWithKey(1, locks...))
		if err := t.B.Renew(t.ctx, e); err != nil {
			t.Errorf("Renew of a choosing entry: %v", err)
		}
		now := t.narrow(t.B, e, locks[1])
		for i, as := range []*lock.Entry{e, now, e, now} {
			if err := t.client(i/2).Renew(t.ctx, as); err != nil {
				t.Errorf("Renew: %v", err)
			}
			if left, err := t.client(i/2).Remaining(t.ctx, as); err != nil || left < longTTL/2 {
				t.Errorf("Remaining = %v, %v", left, err)
			}
		}
		return e
	}
	released, revoked, left := stale("a", "b"), stale("c", "b"), stale("d", "b")
	t.remove(t.A, released, lock.Released)
	put := recordPut("narrowed", "removed", 0)
	if err := t.A.RemoveAndPut(t.ctx, revoked, lock.Revoked, noteOf(1), put); err != nil {
		t.Errorf("RemoveAndPut: %v", err)
	}
	for _, e := range []*lock.Entry{released, revoked} {
		t.wantLost("Remove of a removed entry", t.B.Remove(t.ctx, e, lock.Released))
		t.wantLost("Renew of a removed entry", t.B.Renew(t.ctx, e))
	}
	t.remove(t.B, left, lock.Withdrawn)
	for _, name := range []string{"a", "b", "c", "d"} {
		t.wantQueue(t.A, t.ref(name))
	}
	t.wantSame(append(feeds, t.follow(t.Reopen(t.T)))...)
	for _, f := range feeds {
		for e, why := range map[*lock.Entry]lock.Reason{
			released: lock.Released, revoked: lock.Revoked, left: lock.Withdrawn,
		} {
			v := f.state()
			if n, d := v.departures(e.ID); v.whole() && (n != 1 || d.Reason != why) {
				t.Errorf("left %d times, with reason %q, want once, %q", n, d.Reason, why)
			}
		}
	}
	t.enqueue(t.A, t.poolWithKey(1, "a", "b"))
}

func narrowPast(t *trial) {
	chose, chosen := t.enqueue(t.A, t.pool(1, "a", "b")), t.enqueue(t.A, t.pool(1, "a", "b"))
	revoked := t.enqueue(t.B, t.pool(1, "a", "b", "c"))
	want := []*lock.Entry{chose, t.narrow(t.B, chosen, "b"), t.narrow(t.B, revoked, "c")}
	t.remove(t.A, chose, lock.WaitTimeout)
	t.remove(t.A, chosen, lock.Released)
	err := t.A.RemoveAndPut(t.ctx, revoked, lock.Revoked, noteOf(1), recordPut("past", "removed", 0))
	if err != nil {
		t.Errorf("RemoveAndPut: %v", err)
	}
	t.wantPast(t.Reopen(t.T), want)
}

// narrowWhile removes on the strength of entries that have not chosen.
func narrowWhile(t *trial) {
	wantChanged := func(e *lock.Entry, while ...*lock.Entry) {
		t.Helper()
		for i := range 2 {
			err := t.client(i).Remove(t.ctx, e, lock.WaitTimeout, while...)
			if typed := t.typed("Remove", err); typed == nil || typed.Code != lock.Changed {
				t.Errorf("Remove = %v, want %s", err, lock.Changed)
			}
		}
	}
	there := t.enqueue(t.A, t.draft("x"))
	e := t.enqueue(t.A, t.pool(1, "a", "b"))
	if err := t.B.Remove(t.ctx, e, lock.WaitTimeout, there, e); err != nil {
		t.Errorf("Remove of what has not chosen: %v", err)
	}
	t.wantLost("Remove again", t.A.Remove(t.ctx, e, lock.WaitTimeout, e))
	e = t.enqueue(t.B, t.poolWithKey(1, "a", "b"))
	behind := t.enqueue(t.B, t.draft("a"))
	now := t.narrow(t.A, e, "b")
	wantChanged(e, e)
	wantChanged(e, there, e)
	wantChanged(behind, e)
	t.wantQueue(t.A, t.ref("a"), behind)
	t.wantQueue(t.A, t.ref("b"), now)
	if err := t.A.Remove(t.ctx, behind, lock.WaitTimeout, now); err != nil {
		t.Errorf("Remove while a narrowed entry is there: %v", err)
	}
	gone := t.enqueue(t.A, t.draft("x"))
	t.remove(t.A, gone, lock.Released)
	wantChanged(e, there, gone)
	if err := t.A.Remove(t.ctx, e, lock.Released, there); err != nil {
		t.Errorf("Remove of the entry as it was, while another one is there: %v", err)
	}
	t.wantQueue(t.A, t.ref("b"))
	t.wantLost("Remove again", t.A.Remove(t.ctx, e, lock.WaitTimeout, e))
}

func narrowKey(t *trial) {
	draft := t.poolWithKey(1, "a", "b")
	e := t.enqueue(t.A, draft)
	now := t.narrow(t.B, e, "a")
	for i := range 2 {
		again, written, err := t.client(i).Enqueue(t.ctx, clone(draft))
		if diff := diff(now, again); err != nil || written || diff != "" {
			t.Errorf("its key gives, written %t, %v (-want +got):\n%s", written, err, diff)
		}
	}
	t.remove(t.A, e, lock.Released)
	t.wantUsedUp(t.A, draft, lock.Released)
	t.wantUsedUp(t.B, draft, lock.Released)
}

func narrowAll(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	e := t.enqueue(t.A, t.pool(2, "b", "a"))
	one := t.enqueue(t.A, t.pool(1, "c"))
	for i := range 2 {
		t.wantQueue(t.client(i), t.ref("a"), e)
		t.wantQueue(t.client(i), t.ref("c"), one)
		for _, e := range []*lock.Entry{e, one} {
			now, err := t.client(i).Narrow(t.ctx, clone(e), e.Claims)
			if diff := diff(e, now); err != nil || diff != "" {
				t.Errorf("Narrow: %v (-want +got):\n%s", err, diff)
			}
		}
	}
	t.wantSame(append(feeds, t.follow(t.Reopen(t.T)))...)
	t.remove(t.B, e, lock.Released)
	t.remove(t.B, one, lock.Released)
	t.wantSame(feeds...)
	t.wantQueue(t.A, t.ref("b"))
	t.wantQueue(t.A, t.ref("c"))
}

// narrowExpiry lets entries expire that have chosen, and that have not.
func narrowExpiry(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	var all []leased
	for _, e := range []*lock.Entry{
		t.pool(1, "a", "b"), t.pool(1, "c", "d", "e"), t.poolWithKey(1, "f", "g"),
		t.poolWithKey(2, "h", "i", "j"), t.pool(2, "k", "l"),
	} {
		all = append(all, t.lease(e, t.MinTTL))
	}
	all[1].Entry = t.narrow(t.B, all[1].Entry, "d")
	all[3].Entry = t.narrow(t.B, all[3].Entry, "h", "j")
	heir := t.enqueue(t.B, t.draft("a", "d", "h"))
	var want []*lock.Entry
	for _, l := range all {
		want = append(want, l.Entry)
		for _, f := range feeds {
			t.wantExpiry(f, l)
		}
		t.wantLost("Renew of an expired entry", t.A.Renew(t.ctx, l.Entry))
		_, err := t.A.Narrow(t.ctx, l.Entry, l.Claims[:l.Any])
		t.wantLost("Narrow of an expired entry", err)
	}
	for _, name := range []string{"b", "c", "e", "f", "g", "i", "j", "k", "l"} {
		t.wantQueue(t.B, t.ref(name))
	}
	for _, name := range []string{"a", "d", "h"} {
		t.wantQueue(t.B, t.ref(name), heir)
	}
	t.wantSame(feeds...)
	t.eventually(
		t.Late+t.CallLimit, "the ends are recorded", func() bool { return t.recorded(all...) },
	)
	if t.NoCompact != "" { // a compaction before the record leaves only the reason
		t.wantPast(t.Reopen(t.T), want)
	}
	for _, l := range []leased{all[2], all[3]} {
		t.wantUsedUp(t.B, l.Entry, lock.Expired)
	}
	t.enqueue(t.A, t.pool(1, "a", "b"))
}

// narrowSeam has clients start and list while entries are narrowed and removed.
func narrowSeam(t *trial) {
	feeds := []*feed{t.follow(t.A)}
	for range 4 {
		pools := make([]*lock.Entry, 60)
		together(len(pools), func(i int) {
			var err error
			if pools[i], _, err = t.client(i).Enqueue(t.ctx, t.pool(1, "a", "b", "c")); err != nil {
				t.Errorf("Enqueue: %v", err)
			}
		})
		if t.Failed() {
			return
		}
		var narrowing sync.WaitGroup
		narrowing.Go(func() { t.narrowSome(pools) })
		feeds = append(feeds, t.follow(t.Reopen(t.T)))
		narrowing.Wait()
	}
	t.wantSame(feeds...)
}

// narrowSome narrows entries, and removes every other one.
func (t *trial) narrowSome(pools []*lock.Entry) {
	for i, e := range pools {
		_, err := t.client(i).Narrow(t.ctx, e, e.Claims[i%3:i%3+1])
		if err == nil && i%2 == 0 {
			err = t.client(i).Remove(t.ctx, e, lock.Released)
		}
		if err != nil {
			t.Errorf("Narrow or Remove: %v", err)
		}
	}
}

func narrowForm(t *trial) {
	e := t.enqueue(t.A, t.pool(1, "a", "b"))
	t.SetForm(t.T, store.Form+1)
	for i := range 2 {
		_, err := t.client(i).Narrow(t.ctx, e, keeping(e, "a"))
		if t.wantUnavailable("Narrow", err) {
			t.Errorf("Narrow by client %d = %v", i, err)
		}
	}
	t.wantQueue(t.A, t.ref("a"), e)
	t.remove(t.A, e, lock.Released)
}

// narrowFloor narrows an entry from before a floor was given, by a client that knows the floor. A
// choice by a client that knows only its number from before is of the past that the store may have
// lost: there, others may have been in front.
func narrowFloor(t *trial) {
	before, other := t.enqueue(t.A, t.pool(1, "a", "b")), t.enqueue(t.A, t.pool(1, "c", "d"))
	raised := t.openFloor(1 << 40)
	e := t.queue(raised, t.ref("a"))[0]
	if e.Number != before.Number+1<<40 {
		t.Fatalf("with the floor its number is %d, was %d", e.Number, before.Number)
	}
	now := t.narrow(raised, e, "b")
	if late, err := t.B.Narrow(t.ctx, other, keeping(other, "c")); !errors.Is(err, lock.Lost) {
		t.Errorf("Narrow of the entry of %d from before the floor = %+v, %v", other.Number, late, err)
	}
	if still := t.queue(raised, t.ref("d")); len(still) != 1 || !still[0].Choosing() {
		t.Errorf("after a choice from before the floor, the queue is %+v", still)
	}
	last := t.enqueue(t.A, t.draft("b"))
	t.wantQueue(t.Reopen(t.T), t.ref("b"), now, last)
	for _, s := range []store.Store{raised, t.Reopen(t.T)} {
		if diff := diff([]*lock.Entry{now, last}, t.follow(s).state().entries(t.ref("b"))); diff != "" {
			t.Errorf("the feed lists (-want +got):\n%s", diff)
		}
	}
}

// narrowResumed has a feed begin before entries were narrowed.
func narrowResumed(t *trial) {
	early := t.follow(t.A)
	e, gone := t.enqueue(t.A, t.pool(1, "a", "b")), t.enqueue(t.A, t.poolWithKey(2, "a", "b", "c"))
	from := t.newest(t.A)
	t.narrow(t.B, e, "b")
	t.remove(t.A, t.narrow(t.A, gone, "a", "c"), lock.Released)
	brief := t.enqueue(t.B, t.pool(1, "c", "d"))
	t.remove(t.A, t.narrow(t.B, brief, "d"), lock.Revoked)
	t.wantResumed(early, t.followFrom(from), from)
}

// cutNarrow has a client that is cut off narrow entries. What it has sent may arrive when other
// clients have made another choice, or have removed the entry and written another one in its place.
func cutNarrow(t *trial, how Fault) {
	a := t.follow(t.A)
	t.warmUp(t.draft)
	const n = 4
	drafts, first := make([]*lock.Entry, 2*n), make([]*lock.Entry, 2*n)
	for i := range drafts {
		drafts[i] = t.poolWithKey(1, "a", "b", "c")
		first[i] = t.enqueue(t.A, drafts[i])
	}
	restore := t.CutB(t.T, how)
	together(len(first), func(i int) {
		start := time.Now()
		_, err := t.B.Narrow(t.ctx, clone(first[i]), keeping(first[i], "a"))
		t.wantUnavailable("Narrow", err)
		t.wantSoon("Narrow", start, t.CallLimit)
	})
	var want []*lock.Entry
	for i, e := range first {
		now, err := t.A.Narrow(t.ctx, clone(e), keeping(e, "b"))
		if err != nil || now.Choosing() {
			t.Fatalf("Narrow by a client that was not cut off: %+v, %v", now, err)
		}
		if i < n {
			want = append(want, now)
			continue
		}
		t.remove(t.A, e, lock.Withdrawn)
		want = append(want, t.enqueue(t.A, drafts[i]))
	}
	restore()
	t.eventually(t.recovery(), "the client works again", func() bool { return t.warm(t.draft) == nil })
	t.warmUp(t.draft) // behind what was late
	var queued []*lock.Entry
	for _, name := range []string{"a", "b", "c"} {
		for _, e := range t.queue(t.A, t.ref(name)) {
			if lock.Place(queued, e.ID) < 0 {
				queued = append(queued, e)
			}
		}
	}
	slices.SortFunc(queued, func(a, b *lock.Entry) int { return int(a.Number) - int(b.Number) })
	if diff := diff(want, queued); diff != "" {
		t.Errorf("what was late changes something (-want +got):\n%s", diff)
	}
	t.wantSame(a, t.follow(t.B))
	for _, e := range want[:n] {
		t.wantNarrowed([]*feed{a}, e.ID)
	}
}

// cutNarrowFeed narrows entries while a feed is cut off, one of them before the store forgets.
func cutNarrowFeed(t *trial, how Fault) {
	a, b := t.follow(t.A), t.follow(t.B)
	e, gone := t.enqueue(t.A, t.pool(1, "a", "b")), t.enqueue(t.A, t.poolWithKey(1, "a", "b"))
	behind := t.enqueue(t.A, t.draft("a", "b"))
	t.settle(a, b)
	var now *lock.Entry
	t.interrupt(b, how, func() {
		now = t.narrow(t.A, e, "a")
		if t.Compact != nil {
			t.Compact(t.T)
		}
		t.remove(t.A, t.narrow(t.A, gone, "b"), lock.Released)
	})
	t.wantSame(a, b)
	t.wantQueue(t.B, t.ref("a"), now, behind)
	t.wantQueue(t.B, t.ref("b"), behind)
}
