package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func contextCases() []testCase {
	return []testCase{
		{name: "contexts/one that has ended does nothing", run: contextsEnded},
		{name: "contexts/a client that is gone before its write is sent", run: contextsGone},
		{name: "contexts/one that ends meanwhile hurts nobody else", run: contextsEnding},
		{name: "contexts/a removal whose context ends", run: contextsRemoval},
	}
}

// contextsEnded makes every call, many at once, with a context that was
// cancelled, or whose deadline was over, before it.
func contextsEnded(t *trial) {
	a := t.follow(t.A)
	kept := t.enqueue(t.A, t.draft("kept"))
	cancelled, cancel := context.WithCancel(t.ctx)
	cancel()
	late, cancel := context.WithDeadline(t.ctx, time.Now().Add(-time.Second))
	defer cancel()
	warm := t.enqueue(t.A, t.draft("a")) // so that a lease is at hand
	t.remove(t.A, warm, lock.Released)
	together(12, func(worker int) {
		ctx := []context.Context{cancelled, late}[worker/2%2]
		for range 40 {
			t.ended(ctx, t.client(worker), kept)
		}
	})
	t.wantSame(a)
	t.wantQueue(t.B, t.ref("a"))
	t.wantQueue(t.B, t.ref("kept"), kept)
}

// contextsGone joins for requests that have ended: nothing is written, and the call says so.
func contextsGone(t *trial) {
	warm := t.enqueue(t.A, t.draft("a")) // so that a lease is at hand
	t.remove(t.A, warm, lock.Released)
	request, cancel := context.WithCancel(t.ctx)
	cancel()
	sets, fresh, repeatable := t.draft("a", "b"), t.draft("a"), t.repeatable("a")
	for _, e := range []*lock.Entry{fresh, repeatable, sets} {
		_, _, err := t.A.Enqueue(store.Outlive(request), e)
		t.wantCertain("Enqueue", err)
	}
	t.wantQueue(t.B, t.ref("a"))
	t.wantQueue(t.B, t.ref("b"))
}

// ended makes every call with a context that has ended.
func (t *trial) ended(ctx context.Context, s store.Store, kept *lock.Entry) {
	_, _, err := s.Enqueue(ctx, t.draft("a"))
	t.wantCertain("Enqueue", err)
	t.wantCertain("Remove", s.Remove(ctx, kept, lock.Released))
	t.wantCertain("RemoveAndPut", s.RemoveAndPut(ctx, kept, lock.Revoked, nil, recordPut("r", "x", 0)))
	t.wantUnavailable("Renew", s.Renew(ctx, kept))
	_, err = s.Remaining(ctx, kept)
	t.wantUnavailable("Remaining", err)
	_, _, err = s.Queue(ctx, t.ref("a"))
	t.wantUnavailable("Queue", err)
	_, err = s.Newest(ctx)
	t.wantUnavailable("Newest", err)
}

// wantCertain checks that a write says that it cannot have happened.
func (t *trial) wantCertain(doing string, err error) {
	t.Helper()
	if t.wantUnavailable(doing, err) {
		t.Errorf("%s with a context that has ended is ambiguous", doing)
	}
}

// outcomes are the entries of interrupted calls.
type outcomes struct {
	mu      sync.Mutex
	done    []*lock.Entry // the call returned no error
	certain []*lock.Entry // the call says that it did nothing
	unknown []*lock.Entry
}

func (o *outcomes) add(t *trial, doing string, e *lock.Entry, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.done = append(o.done, e)
	case t.wantUnavailable(doing, err):
		o.unknown = append(o.unknown, e)
	default:
		o.certain = append(o.certain, e)
	}
}

// contextsEnding enqueues on a few locks with contexts that end at any moment,
// beside others that do not end, all through the same client.
func contextsEnding(t *trial) {
	b := t.follow(t.B)
	names, moment := []string{"a", "b", "c", "d"}, t.moment()
	var out outcomes
	together(16, func(worker int) {
		for i := range 30 {
			ctx, cancel := t.brief(worker, moment)
			draft := t.repeatable(names[(worker+i)%len(names)])
			_, _, err := t.A.Enqueue(ctx, clone(draft))
			cancel()
			if worker%2 == 1 && err != nil {
				t.Errorf("Enqueue beside others that were cancelled: %v", err)
				continue
			}
			out.add(t, "Enqueue", draft, err)
		}
	})
	t.checkEnqueues(b, &out)
}

// moment is a few times what a write takes here, alone.
func (t *trial) moment() time.Duration {
	start := time.Now()
	for range 4 {
		t.remove(t.A, t.enqueue(t.A, t.draft("moment")), lock.Released)
	}
	return max(3*time.Millisecond, time.Since(start)/2)
}

// brief returns a context that ends within the moment for even workers.
func (t *trial) brief(worker int, moment time.Duration) (context.Context, context.CancelFunc) {
	if worker%2 == 1 {
		return context.WithCancel(t.ctx)
	}
	return context.WithTimeout(t.ctx, rand.N(moment))
}

// checkEnqueues repeats the ambiguous attempts, and checks that each entry that
// should be there is there once, and none that should not.
func (t *trial) checkEnqueues(f *feed, out *outcomes) {
	t.Helper()
	for i, e := range out.unknown {
		t.enqueue(t.client(i), e)
		t.enqueue(t.client(i+1), e)
	}
	t.wantSame(f)
	v := f.state()
	for _, e := range append(out.done, out.unknown...) {
		if n := v.joined[e.ID]; v.resets == 1 && n != 1 {
			t.Errorf("an entry joined %d times, want 1", n)
		}
	}
	queued := map[lock.ID]int{} // in how many queues
	for _, places := range v.queues {
		for _, p := range places {
			queued[p.Entry.ID]++
		}
	}
	for _, e := range append(out.done, out.unknown...) {
		if queued[e.ID] != len(e.Claims) {
			t.Errorf("an entry on %d locks is in %d queues", len(e.Claims), queued[e.ID])
		}
	}
	for _, e := range out.certain {
		if queued[e.ID] != 0 {
			t.Error("an entry is in the queue, though its Enqueue said that it cannot be")
		}
	}
	t.Logf("%d done, %d refused, %d ambiguous", len(out.done), len(out.certain), len(out.unknown))
}

// contextsRemoval removes entries with contexts that end at any moment.
func contextsRemoval(t *trial) {
	b := t.follow(t.B)
	moment := t.moment()
	var out outcomes
	together(8, func(worker int) {
		for range 20 {
			e, _, err := t.client(worker).Enqueue(t.ctx, t.draft("a"))
			if err != nil {
				t.Errorf("Enqueue: %v", err)
				return
			}
			ctx, cancel := t.brief(0, moment)
			err = t.client(worker).Remove(ctx, e, lock.Released)
			cancel()
			out.add(t, "Remove", e, err)
		}
	})
	t.checkRemovals(b, &out)
}

// checkRemovals checks that what was removed is gone, that what was surely not
// is there, and that repeating the rest settles it.
func (t *trial) checkRemovals(f *feed, out *outcomes) {
	t.Helper()
	there := map[lock.ID]bool{}
	for _, e := range t.queue(t.A, t.ref("a")) {
		there[e.ID] = true
	}
	for _, e := range out.done {
		if there[e.ID] {
			t.Error("an entry is there after Remove returned no error")
		}
	}
	for _, e := range out.certain {
		if !there[e.ID] {
			t.Error("an entry is gone, though its Remove said that it cannot be")
		}
	}
	for i, e := range append(out.unknown, out.certain...) {
		if err := t.client(i).Remove(t.ctx, e, lock.Released); err != nil {
			t.wantLost("Remove repeated", err)
		}
	}
	t.wantQueue(t.B, t.ref("a"))
	t.wantSame(f)
	v := f.state()
	for _, e := range append(append(out.done, out.unknown...), out.certain...) {
		if n, d := v.departures(e.ID); v.resets == 1 && (n != 1 || d.Reason != lock.Released) {
			t.Errorf("left %d times, with reason %q, want once, %q", n, d.Reason, lock.Released)
		}
	}
	t.Logf("%d done, %d refused, %d ambiguous", len(out.done), len(out.certain), len(out.unknown))
}
