package storetest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// resumeCases go alone: others have the store forget its history.
func resumeCases() []testCase {
	return []testCase{
		{
			name: "resume/a feed that begins earlier tells what happened since", run: resumed,
			needs: earlier, alone: true,
		},
		{name: "resume/while entries come and go", run: resumedUnderLoad, needs: earlier, alone: true},
		{
			name: "resume/where nothing can be told it begins now", run: resumedNowhere, needs: earlier,
			alone: true,
		},
		{
			name:  "resume/a feed that was cut off tells what happened meanwhile",
			run:   func(t *trial) { interruptedFeed(t, Broken) },
			needs: cutHistory,
			alone: true,
		},
		{
			name:  "resume/a feed that heard nothing tells what happened meanwhile",
			run:   func(t *trial) { interruptedFeed(t, Silent) },
			needs: cutHistory,
			alone: true,
		},
	}
}

// interruptedFeed has entries come and go while a feed is cut off, twice: it tells each change
// once, and in order.
func interruptedFeed(t *trial, how Fault) {
	t.remove(t.A, t.enqueue(t.A, t.draft("a")), lock.Released)
	a, b := t.follow(t.A), t.follow(t.B)
	there := []*lock.Entry{
		t.enqueue(t.A, t.draft("a")), t.enqueue(t.A, t.kept("b")), t.enqueue(t.A, t.draft("c")),
	}
	t.settle(a, b)
	for round := range 2 {
		t.interrupt(b, how, func() { t.happens(there[round]) })
		t.wantSame(a, b)
	}
	va, vb := a.state(), b.state()
	if va.gaps > 0 || vb.gaps > 0 {
		t.Errorf("the feed of who was not cut off has %d gaps, that of who was has %d", va.gaps, vb.gaps)
	}
	if diff := diff(va.all, vb.all); diff != "" {
		t.Errorf("two feeds tell different changes (-first +other):\n%s", diff)
	}
}

// happens has an entry go, and others come and go.
func (t *trial) happens(goes *lock.Entry) {
	t.remove(t.A, goes, lock.Revoked)
	brief := t.enqueue(t.A, t.kept("d"))
	t.remove(t.A, brief, lock.WaitTimeout)
	t.workload(func(int) store.Store { return t.A }, 2, 20)
}

// interrupt has something happen while client B is cut off, until its feed is back.
func (t *trial) interrupt(b *feed, how Fault, happens func()) {
	t.Helper()
	before := b.state().losses
	restore := t.CutB(t.T, how)
	happens()
	if !b.await(2*t.CallLimit, func() bool { return b.losses > before }) {
		t.Fatalf("the feed has not said that it is interrupted within %v", 2*t.CallLimit)
	}
	restore()
	if !b.await(t.recovery(), func() bool { return b.current && b.recalled }) {
		t.Fatalf("the feed has not gone on within %v", t.recovery())
	}
}

// resumer is a store whose feed can begin earlier.
type resumer interface {
	store.Store
	Resume(number uint64)
}

// followFrom has another client's feed begin at a number.
func (t *trial) followFrom(number uint64) *feed {
	t.Helper()
	s, ok := t.Reopen(t.T).(resumer)
	if !ok {
		t.Fatal("the harness does not say why its feeds cannot begin earlier")
	}
	s.Resume(number)
	return t.follow(s)
}

// resumed makes entries of every kind leave after a number: some that existed by then, some that
// did not, and one whose id is used again.
func resumed(t *trial) {
	early := t.follow(t.A)
	all := t.various()
	all = append(all, t.kept("g"), t.repeatable("h", "i"), t.draft("a"))
	all[4].Metadata = map[string]string{"job": "<7> \u5de5"}
	var there []*lock.Entry
	for i, e := range all {
		there = append(there, t.enqueue(t.client(i), e))
	}
	from := t.newest(t.A)
	for i, e := range there[:6] {
		t.remove(t.client(i/2), e, append(reasons(), lock.Withdrawn)[i%4])
	}
	brief := t.enqueue(t.A, t.kept("j"))
	t.remove(t.B, brief, lock.Deadlocked)
	t.enqueue(t.B, t.various()[0])
	newest := t.newest(t.A)
	late := t.followFrom(from)
	t.wantResumed(early, late, from)
	slices.SortFunc(there, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	late.mu.Lock()
	defer late.mu.Unlock()
	if diff := diff(there, late.first); diff != "" {
		t.Errorf("what there was (-want +got):\n%s", diff)
	}
	if late.newest < newest {
		t.Errorf(
			"it says that the store was at %d when it began, which was at %d before", late.newest, newest,
		)
	}
}

func (t *trial) newest(s store.Store) uint64 {
	t.Helper()
	number, err := s.Newest(t.ctx)
	if err != nil {
		t.Fatalf("Newest: %v", err)
	}
	return number
}

// wantResumed compares what two feeds tell of what happened after the number at which the
// second has begun.
func (t *trial) wantResumed(early, late *feed, from uint64) {
	t.Helper()
	t.wantSame(early, late)
	a, b := early.state(), late.state()
	if b.resets != 1 || !a.whole() {
		t.Fatalf("the feeds have begun %d and %d times", a.resets, b.resets)
	}
	if b.since != from {
		t.Errorf("the feed has begun at %d, want %d", b.since, from)
	}
	if diff := diff(a.changesAfter(from), b.changesAfter(from)); diff != "" {
		t.Errorf("it tells otherwise what happened since (-want +got):\n%s", diff)
	}
}

// resumedUnderLoad has a feed begin earlier while others write.
func resumedUnderLoad(t *trial) {
	early := t.follow(t.A)
	t.workload(t.client, 4, 20)
	from := t.newest(t.B)
	ctx, stop := context.WithTimeout(t.ctx, time.Minute)
	defer stop()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				e, _, err := t.client(i).Enqueue(t.ctx, t.draft("busy"))
				if err == nil {
					err = t.client(i).Remove(t.ctx, e, lock.Released)
				}
				if err != nil {
					t.Errorf("while others write: %v", err)
					return
				}
			}
		})
	}
	t.eventually(
		t.recovery(), "others write", func() bool { return len(early.state().changesAfter(from)) > 50 },
	)
	late := t.followFrom(from)
	stop()
	all.Wait()
	t.wantResumed(early, late, from)
}

// resumedNowhere has feeds begin at numbers that are none of the past.
func resumedNowhere(t *trial) {
	e := t.enqueue(t.A, t.draft("a"))
	for _, from := range []uint64{0, lock.MaxNumber} {
		late := t.followFrom(from)
		t.wantSame(late)
		if v := late.state(); v.since < e.Number || v.since == from {
			t.Errorf("from %d: it begins at %d, want now", from, v.since)
		}
	}
}
