package storetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func noticeCases() []testCase {
	all := []testCase{
		{name: "notices/every feed tells them in order, once", run: noticesInOrder},
		{name: "notices/one that is repeated is written once", run: noticesOnce},
		{name: "notices/two clients write one at one moment", run: noticesRace},
		{name: "notices/belongs to an entry that is there", run: noticesOfEntry},
		{name: "notices/who lists has those of entries that are there", run: noticesListed},
		{name: "notices/of an id that comes again", run: noticesOfEarlier},
		{name: "notices/out of bounds", run: noticesUnfit},
		{name: "notices/an older version passes over them", run: noticesOlder},
		{name: "notices/after a gap", run: noticesAfterGap, needs: compact},
		{name: "notices/with a floor", run: noticesFloor, needs: floors},
		{name: "notices/none in a store that lost its past", run: noticesDistrust},
	}
	for _, f := range []Fault{Silent, Deaf, Broken} {
		all = append(all, testCase{name: "notices/cut " + string(f), run: func(t *trial) { noticesCut(t, f) }, needs: cut})
	}
	return all
}

const anyNotice lock.EventKind = "lock.something"

// notice returns a new notice about the locks that belongs to no entry.
func (t *trial) notice(locks ...string) *lock.Notice {
	return &lock.Notice{ID: rand.Text(), Tenant: t.tenant, Kind: anyNotice, Locks: locks, Text: json.RawMessage(`{"why":"a <b>"}`)}
}

func (t *trial) noticeOf(e *lock.Entry) *lock.Notice {
	n := t.notice(e.Name())
	n.Of = e.ID
	return n
}

func (t *trial) notify(s store.Store, n *lock.Notice, of *lock.Entry) {
	t.Helper()
	if err := s.Notify(t.ctx, n, of); err != nil {
		t.Fatalf("Notify(%s): %v", n.ID, err)
	}
}

// wantTold checks that a feed has told the notice once, as it was written. One of no entry is not told
// if the feed started over meanwhile.
func (t *trial) wantTold(f *feed, n *lock.Notice) {
	t.Helper()
	v := f.state()
	told := v.noticesOf(n.ID)
	if len(told) == 0 && n.Of == "" && !v.whole() {
		return
	}
	if len(told) != 1 {
		t.Errorf("the notice %s was told %d times", n.ID, len(told))
		return
	}
	want := *n
	want.Number = told[0].Number
	if diff := diff(&want, told[0]); diff != "" {
		t.Errorf("the notice that was told (-want +got):\n%s", diff)
	}
}

// noticesInOrder writes notices between entries that come and go through both clients.
func noticesInOrder(t *trial) {
	a, b := t.follow(t.A), t.follow(t.B)
	var busy sync.WaitGroup
	busy.Go(func() { t.workload(t.client, 4, 20) })
	var all []*lock.Notice
	for i := range 30 {
		e := t.enqueue(t.client(i), t.draft("noticed"))
		free, owned := t.notice("x", "y"), t.noticeOf(e)
		t.notify(t.client(i+1), free, nil)
		t.notify(t.client(i/2), owned, e)
		t.remove(t.client(i), e, lock.Released)
		all = append(all, free, owned)
	}
	busy.Wait()
	t.settle(a, b)
	va, vb := a.state(), b.state()
	from := max(va.since, vb.since)
	if diff := diff(va.changesAfter(from), vb.changesAfter(from)); diff != "" {
		t.Errorf("two feeds tell different changes (-first +other):\n%s", diff)
	}
	for _, f := range []*feed{a, b} {
		last := uint64(0)
		for i, n := range all {
			if told := f.state().noticesOf(n.ID); len(told) == 1 && told[0].Number > last {
				last = told[0].Number
			} else if f.state().whole() {
				t.Errorf("the notice %d was told %d times, or before the one before it", i, len(told))
			}
		}
	}
}

func noticesOnce(t *trial) {
	a, b := t.follow(t.A), t.follow(t.B)
	e := t.enqueue(t.A, t.draft("a"))
	free, owned := t.notice("a"), t.noticeOf(e)
	for i := range 4 {
		t.notify(t.client(i), free, nil)
		t.notify(t.client(i), owned, e)
	}
	elsewhere := *free
	elsewhere.Tenant = "other" // an id is its tenant's
	t.notify(t.A, &elsewhere, nil)
	t.settle(a, b)
	for _, f := range []*feed{a, b} {
		t.wantTold(f, owned)
		if told := f.state().noticesOf(free.ID); len(told) != 2 || told[0].Tenant == told[1].Tenant {
			t.Errorf("%d notices were told with an id that two tenants have", len(told))
		}
	}
}

func noticesRace(t *trial) {
	a := t.follow(t.A)
	e := t.enqueue(t.A, t.draft("a"))
	for range 10 {
		free, owned := t.notice("a"), t.noticeOf(e)
		together(8, func(i int) {
			n, of := free, (*lock.Entry)(nil)
			if i%4 < 2 {
				n, of = owned, e
			}
			if err := t.client(i).Notify(t.ctx, n, of); err != nil {
				t.Errorf("Notify: %v", err)
			}
		})
		t.settleOne(a)
		t.wantTold(a, free)
		t.wantTold(a, owned)
	}
}

// settleOne waits until a feed has reached the number that the store has now.
func (t *trial) settleOne(f *feed) {
	t.Helper()
	number, err := t.A.Newest(t.ctx)
	if err != nil {
		t.Fatalf("Newest: %v", err)
	}
	if !f.await(t.Late, func() bool { return f.current && f.upTo >= number }) {
		t.Fatalf("the feed has not reached %d", number)
	}
}

// noticesOfEntry writes notices of entries that are gone, of one lock and of a set, fresh and
// with a key.
func noticesOfEntry(t *trial) {
	a := t.follow(t.A)
	for _, draft := range []*lock.Entry{t.draft("a"), t.repeatable("a"), t.draft("a", "b")} {
		e := t.enqueue(t.A, draft)
		t.remove(t.B, e, lock.Released)
		for i := range 2 {
			n := t.noticeOf(e)
			t.wantLost("Notify of an entry that is gone", t.client(i).Notify(t.ctx, n, e))
		}
	}
	waiting, holding := t.enqueue(t.A, t.draft("c")), t.enqueue(t.B, t.repeatable("c"))
	n := t.noticeOf(holding)
	t.notify(t.A, n, holding)
	t.remove(t.A, holding, lock.Released) // nothing of the notice is in its way
	t.wantLost("Notify", t.B.Notify(t.ctx, t.noticeOf(holding), holding))
	t.wantQueue(t.A, t.ref("c"), waiting)
	t.settle(a)
	t.wantTold(a, n)
	if told := len(a.state().notices); told != 1 && a.state().whole() {
		t.Errorf("%d notices were told, want 1", told)
	}
}

func noticesListed(t *trial) {
	stays, goes := t.enqueue(t.A, t.repeatable("a")), t.enqueue(t.B, t.draft("a", "b"))
	free, first, second, gone := t.notice("a"), t.noticeOf(stays), t.noticeOf(stays), t.noticeOf(goes)
	t.notify(t.A, free, nil)
	t.notify(t.A, first, stays)
	t.notify(t.B, gone, goes)
	t.notify(t.B, second, stays)
	t.remove(t.B, goes, lock.Released)
	for _, s := range []store.Store{t.A, t.B, t.Reopen(t.T)} {
		f := t.follow(s)
		told := f.state().notices
		if len(told) != 2 || told[0].ID != first.ID || told[1].ID != second.ID {
			t.Errorf("a feed begins with %d notices, want those of the entry that is there, in order", len(told))
			continue
		}
		t.wantTold(f, first)
	}
	t.remove(t.A, stays, lock.Released)
	if told := t.follow(t.Reopen(t.T)).state().notices; len(told) != 0 {
		t.Errorf("a feed begins with %d notices of entries that are gone", len(told))
	}
}

// noticesOfEarlier has a key used again whose first entry was withdrawn.
func noticesOfEarlier(t *trial) {
	draft := t.repeatable("a")
	first := t.enqueue(t.A, draft)
	t.notify(t.A, t.noticeOf(first), first)
	t.remove(t.A, first, lock.Withdrawn)
	second := t.enqueue(t.B, draft)
	t.wantLost("Notify of the earlier entry", t.A.Notify(t.ctx, t.noticeOf(first), first))
	f := t.follow(t.Reopen(t.T))
	if told := f.state().notices; len(told) != 0 {
		t.Errorf("the later entry has %d notices of the earlier one", len(told))
	}
	n := t.noticeOf(second)
	t.notify(t.B, n, second)
	t.settle(f)
	t.wantTold(f, n)
}

func noticesUnfit(t *trial) {
	e := t.enqueue(t.A, t.draft("a"))
	for what, change := range map[string]func(*lock.Notice){
		"no id":         func(n *lock.Notice) { n.ID = "" },
		"a slash":       func(n *lock.Notice) { n.ID = "a/b" },
		"no locks":      func(n *lock.Notice) { n.Locks = nil },
		"many locks":    func(n *lock.Notice) { n.Locks = strings.Split(strings.Repeat("a", lock.MaxNoticeLocks+1), "") },
		"no tenant":     func(n *lock.Notice) { n.Tenant = "" },
		"much text":     func(n *lock.Notice) { n.Text = json.RawMessage(`"` + strings.Repeat("a", lock.MaxNoticeText) + `"`) },
		"what is no":    func(n *lock.Notice) { n.Text = json.RawMessage(`{`) },
		"another entry": func(n *lock.Notice) { n.Of = "other" },
	} {
		n := t.noticeOf(e)
		change(n)
		if err := t.A.Notify(t.ctx, n, e); !errors.Is(err, lock.InvalidRequest) {
			t.Errorf("Notify with %s = %v", what, err)
		}
	}
	largest := t.notice("a")
	largest.ID = strings.Repeat("i", lock.MaxNameLength)
	largest.Text = json.RawMessage(`"` + strings.Repeat("a", lock.MaxNoticeText-2) + `"`)
	f := t.follow(t.B)
	t.notify(t.A, largest, nil)
	t.settle(f)
	t.wantTold(f, largest)
}

// noticesOlder has a client of an earlier version follow notices.
func noticesOlder(t *trial) {
	older := t.openOlder()
	f := t.follow(older)
	e := t.enqueue(older, t.draft("a"))
	t.notify(t.A, t.notice("a"), nil)
	t.notify(t.A, t.noticeOf(e), e)
	t.settle(f)
	if err := older.Refusal(); err != nil {
		t.Errorf("the older version refuses: %v", err)
	}
	t.remove(older, e, lock.Released)
	t.enqueue(older, t.draft("a"))
}

func noticesAfterGap(t *trial) {
	a := t.follow(t.A)
	e := t.enqueue(t.A, t.draft("a"))
	n := t.noticeOf(e)
	t.notify(t.A, n, e)
	t.Compact(t.T)
	late := t.follow(t.B)
	t.settle(a, late)
	t.wantTold(a, n)
	t.wantTold(late, n)
}

func noticesFloor(t *trial) {
	e := t.enqueue(t.A, t.draft("a"))
	n := t.noticeOf(e)
	t.notify(t.A, n, e)
	before := t.follow(t.A).state().noticesOf(n.ID)
	raised := t.openFloor(e.Number + 1_000_000)
	f := t.follow(raised)
	t.wantTold(f, n)
	if told := f.state().noticesOf(n.ID); len(before) != 1 || len(told) != 1 || told[0].Number != before[0].Number+e.Number+1_000_000 {
		t.Errorf("a floor of %d over a notice makes of it %v", e.Number+1_000_000, told)
	}
}

func noticesDistrust(t *trial) {
	f := t.follow(t.A)
	e := t.enqueue(t.A, t.draft("a"))
	if err := t.A.Distrust(t.ctx, e.Number+1_000_000); err != nil {
		t.Fatalf("Distrust: %v", err)
	}
	n := t.noticeOf(e)
	if t.wantUnavailable("Notify in a store that lost its past", t.A.Notify(t.ctx, n, e)) {
		t.Error("the refusal is ambiguous")
	}
	if told := f.state().noticesOf(n.ID); len(told) > 0 {
		t.Error("it was written")
	}
}

// noticesCut cuts a client that writes notices. What it was told of each is held against
// what the other one's feed tells.
func noticesCut(t *trial, how Fault) {
	a := t.follow(t.A)
	owner := t.enqueue(t.A, t.draft("a"))
	first := t.noticeOf(owner)
	t.notify(t.B, first, owner)
	restore := t.CutB(t.T, how)
	type attempt struct {
		notice *lock.Notice
		of     *lock.Entry
		err    error
	}
	attempts := make([]attempt, 8)
	together(len(attempts), func(i int) {
		at := &attempts[i]
		if at.notice = t.notice("a"); i%2 == 0 {
			at.notice, at.of = t.noticeOf(owner), owner
		}
		start := time.Now()
		at.err = t.B.Notify(t.ctx, at.notice, at.of)
		t.wantSoon("Notify", start, t.CallLimit)
		t.wantUnavailable("Notify", at.err)
	})
	restore()
	t.eventually(t.recovery(), "the client works again", func() bool { return t.B.Notify(t.ctx, first, owner) == nil })
	for i, at := range attempts {
		var said *lock.Error
		if errors.As(at.err, &said) && !said.OutcomeUnknown {
			t.settleOne(a)
			if told := a.state().noticesOf(at.notice.ID); len(told) > 0 {
				t.Errorf("notice %d was told, though it was said to be not written: %v", i, at.err)
			}
		}
		t.eventually(t.recovery(), "it is repeated", func() bool {
			ctx, cancel := context.WithTimeout(t.ctx, t.CallLimit)
			defer cancel()
			return t.B.Notify(ctx, at.notice, at.of) == nil
		})
	}
	t.settle(a)
	for _, at := range attempts {
		t.wantTold(a, at.notice)
	}
	t.wantTold(a, first)
}
