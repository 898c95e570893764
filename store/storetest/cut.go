package storetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Fault is a way in which a client loses its store.
type Fault string

// The faults that CutB must know.
const (
	// Silent loses everything both ways; nothing is closed.
	Silent Fault = "silent"
	// Deaf loses the answers only: the store receives and executes requests.
	Deaf Fault = "deaf"
	// Broken closes the connections and lets no new ones through.
	Broken Fault = "broken"
)

// recovery is how long a client may take to work again after the store is back: what hangs
// ends within CallLimit, and what is asked for then takes as long at most.
func (t *trial) recovery() time.Duration { return 4 * t.CallLimit }

func cutCases() []testCase {
	var all []testCase
	for _, f := range []Fault{Silent, Deaf, Broken} {
		all = append(
			all,
			testCase{
				name: "cut/" + string(f) + "/calls end in time", run: func(t *trial) { cutCalls(t, f) },
				needs: cut,
			},
			testCase{
				name: "cut/" + string(f) + "/no outcome is misreported",
				run:  func(t *trial) { cutOutcomes(t, f) }, needs: cut,
			},
			testCase{
				name: "cut/" + string(f) + "/what was given up is taken back",
				run:  func(t *trial) { cutGivenUp(t, f) }, needs: cut,
			},
			testCase{
				name: "cut/" + string(f) + "/a try that comes late finds its key withdrawn",
				run:  func(t *trial) { cutLateTry(t, f) }, needs: cut,
			},
			testCase{
				name: "cut/" + string(f) + "/the feed says so and starts over",
				run:  func(t *trial) { cutFeed(t, f) }, needs: cut,
			},
		)
	}
	return append(
		all, testCase{name: "cut/deaf/one call writes its entry once", run: cutWrittenOnce, needs: cut},
	)
}

// call is a method of a client with its arguments.
type call struct {
	name string
	do   func(context.Context, store.Store) error
}

func (t *trial) calls(removed, kept *lock.Entry) []call {
	return []call{
		{"Enqueue", func(ctx context.Context, s store.Store) error {
			_, _, err := s.Enqueue(ctx, t.draft("other"))
			return err
		}},
		{
			"Remove",
			func(ctx context.Context, s store.Store) error { return s.Remove(ctx, removed, lock.Released) },
		},
		{"RemoveAndPut", func(ctx context.Context, s store.Store) error {
			e, _, err := t.A.Enqueue(t.ctx, t.draft("revoked"))
			if err != nil {
				return err
			}
			return s.RemoveAndPut(ctx, e, lock.Revoked, nil, recordPut(string(e.ID), "x", 0))
		}},
		{"Narrow", func(ctx context.Context, s store.Store) error {
			e, _, err := t.A.Enqueue(t.ctx, t.pool(1, "narrow", "narrower"))
			if err == nil {
				_, err = s.Narrow(ctx, e, e.Claims[:1])
			}
			return err
		}},
		{"Renew", func(ctx context.Context, s store.Store) error { return s.Renew(ctx, kept) }},
		{"Remaining", func(ctx context.Context, s store.Store) error {
			_, err := s.Remaining(ctx, kept)
			return err
		}},
		{"Queue", func(ctx context.Context, s store.Store) error {
			_, _, err := s.Queue(ctx, t.ref("a"))
			return err
		}},
		{"Newest", func(ctx context.Context, s store.Store) error {
			_, err := s.Newest(ctx)
			return err
		}},
	}
}

// cutCalls checks every call of a client that was cut off, with a context that
// allows more time than the store should take, and with one that allows little.
func cutCalls(t *trial, how Fault) {
	kept, removed := t.enqueue(t.B, t.draft("a")), t.enqueue(t.B, t.draft("a"))
	restore := t.CutB(t.T, how)
	calls := t.calls(removed, kept)
	together(2*len(calls), func(i int) {
		c, limit := calls[i/2], t.CallLimit
		allowed := limit + 2*busy
		if i%2 == 1 {
			limit = 300 * time.Millisecond
			allowed = limit
		}
		ctx, cancel := context.WithTimeout(t.ctx, allowed)
		defer cancel()
		start := time.Now()
		t.wantUnavailable(c.name, c.do(ctx, t.B))
		t.wantSoon(c.name, start, limit)
	})
	restore()
	for _, c := range t.calls(t.enqueue(t.A, t.draft("a")), kept) {
		t.eventually(t.recovery(), c.name+" works again", func() bool { return c.do(t.ctx, t.B) == nil })
	}
}

// cutOutcomes cuts the client while it writes entries and sets, and holds what it said about
// each write against what happened, in all queues.
func cutOutcomes(t *trial, how Fault) {
	a := t.follow(t.A)
	var enqueues, removals outcomes
	var cycles atomic.Int32
	warm := make(chan struct{}) // closed after some cycles
	restore := make(chan func(), 1)
	go func() {
		<-warm
		restore <- t.CutB(t.T, how)
	}()
	together(8, func(worker int) {
		for t.interrupted(worker, &enqueues, &removals) == nil {
			if cycles.Add(1) == 40 {
				close(warm)
			}
		}
	})
	if cycles.Load() < 40 {
		t.Fatal("the client stopped before it was cut off")
	}
	(<-restore)()
	t.eventually(t.recovery(), "the client works again", func() bool {
		_, err := t.B.Newest(t.ctx)
		return err == nil
	})
	t.checkRemovals(a, &removals)
	t.checkEnqueues(a, &enqueues)
}

// cutGivenUp cuts a client off that joins a lock under fresh ids. Whatever became of its
// writes, no client comes back for the entries, and they must not stand in the way.
func cutGivenUp(t *trial, how Fault) {
	together(64, func(int) { // everything that a join needs is there
		e, _, err := t.B.Enqueue(t.ctx, t.draft("a"))
		if err == nil {
			err = t.B.Remove(t.ctx, e, lock.Released)
		}
		if err != nil {
			t.Errorf("before the cut: %v", err)
		}
	})
	restore := t.CutB(t.T, how)
	together(16, func(int) {
		_, _, err := t.B.Enqueue(t.ctx, t.draft("a"))
		t.wantUnavailable("Enqueue", err)
	})
	restore()
	t.eventually(t.recovery(), "the client works again", func() bool {
		_, err := t.B.Newest(t.ctx)
		return err == nil
	})
	t.eventually(
		t.recovery(), "the lock is free", func() bool { return len(t.queue(t.A, t.ref("a"))) == 0 },
	)
	next := t.enqueue(t.A, t.draft("a"))
	t.wantQueue(t.A, t.ref("a"), next)
}

// interrupted enqueues one entry and removes another through client B, until
// one of that fails.
func (t *trial) interrupted(worker int, enqueues, removals *outcomes) error {
	draft, start := t.repeatable([][]string{{"b"}, {"b", "c"}}[worker%2]...), time.Now()
	_, _, err := t.B.Enqueue(t.ctx, clone(draft))
	t.wantSoon("Enqueue", start, t.CallLimit)
	enqueues.add(t, "Enqueue", draft, err)
	if err != nil {
		return err
	}
	e, _, err := t.A.Enqueue(t.ctx, t.draft([][]string{{"a"}, {"a", "d"}}[worker%2]...))
	if err != nil {
		t.Errorf("Enqueue by a client that was not cut off: %v", err)
		return err
	}
	start = time.Now()
	err = t.B.Remove(t.ctx, e, lock.Released)
	t.wantSoon("Remove", start, t.CallLimit)
	removals.add(t, "Remove", e, err)
	return err
}

// busy is what a machine that has much else to do may add to a call.
const busy = 10 * time.Second

// wantSoon checks that a call that began at start has ended within the limit
// or not long after.
func (t *trial) wantSoon(doing string, start time.Time, limit time.Duration) {
	t.Helper()
	if took := time.Since(start); took > limit+busy {
		t.Errorf("%s took %v, want %v at most", doing, took, limit)
	}
}

// cutFeed changes the store behind the back of a client that is cut off, and
// makes the store forget how if it can.
func cutFeed(t *trial, how Fault) {
	a, b := t.follow(t.A), t.follow(t.B)
	kept, removed := t.enqueue(t.A, t.draft("a")), t.enqueue(t.B, t.draft("a"))
	t.settle(a, b)
	var losses, resets int // a busy store may have interrupted the feed before
	b.await(t.CallLimit, func() bool { losses, resets = b.losses, b.resets; return b.current })
	restore := t.CutB(t.T, how)
	t.remove(t.A, removed, lock.Revoked)
	brief := t.enqueue(t.A, t.draft("b"))
	t.remove(t.A, brief, lock.WaitTimeout)
	t.workload(func(int) store.Store { return t.A }, 2, 20)
	if t.Compact != nil {
		t.Compact(t.T)
	}
	if !b.await(2*t.CallLimit, func() bool { return b.losses > losses }) {
		t.Errorf("the feed has not said that it is interrupted within %v", 2*t.CallLimit)
	}
	restore()
	if !b.await(t.recovery(), func() bool { return b.current && b.resets > resets }) {
		t.Fatalf("the feed has not started over within %v", t.recovery())
	}
	t.wantSame(a, b)
	want := map[lock.ID]lock.Reason{removed.ID: lock.Revoked, brief.ID: lock.WaitTimeout}
	t.eventually(
		t.recovery(),
		"the new view remembers how they ended",
		func() bool { // the feed reports it after the entries
			for _, end := range b.state().ended {
				if why, ok := want[end.ID]; ok && end.Reason == why {
					delete(want, end.ID)
				}
			}
			return len(want) == 0
		},
	)
	if n, _ := b.state().departures(kept.ID); n > 0 {
		t.Error("an entry left that did not")
	}
}
