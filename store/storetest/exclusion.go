package storetest

import (
	"math/rand/v2"
	"sync"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

func exclusionCases() []testCase {
	return []testCase{
		{name: "exclusion/no two holders, fences grow, nobody is forgotten", run: exclusion},
	}
}

// room watches over one lock from outside the store: who is in it, and with
// which fences.
type room struct {
	inside map[lock.ID]lock.Claim
	fence  uint64 // the greatest of anyone who was in it alone
}

// rooms are the locks of a trial.
type rooms struct {
	t   *trial
	mu  sync.Mutex
	all map[string]*room
}

func (r *rooms) enter(e *lock.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range e.Claims {
		in := r.all[c.Name]
		if in == nil {
			in = &room{inside: map[lock.ID]lock.Claim{}}
			r.all[c.Name] = in
		}
		r.check(in, e, c)
		in.inside[e.ID] = c
	}
}

func (r *rooms) check(in *room, e *lock.Entry, c lock.Claim) {
	for _, other := range in.inside {
		if c.Mode == lock.Exclusive || other.Mode != c.Mode || other.Limit != c.Limit {
			r.t.Errorf("%s: %s holds beside %s", c.Name, c.Mode, other.Mode)
		}
	}
	if c.Mode == lock.Semaphore && len(in.inside) >= c.Limit {
		r.t.Errorf("%s: one more than %d hold", c.Name, c.Limit)
	}
	if e.Number <= in.fence {
		r.t.Errorf("%s: fence %d after %d", c.Name, e.Number, in.fence)
	}
	if c.Mode == lock.Exclusive {
		in.fence = e.Number
	}
}

func (r *rooms) leave(e *lock.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range e.Claims {
		delete(r.all[c.Name].inside, e.ID)
	}
}

// exclusion has workers take and give back locks as replicas do: enqueue, wait
// for the feed to say that the entry holds, hold, remove.
func exclusion(t *trial) {
	feeds := []*feed{t.follow(t.A), t.follow(t.B)}
	watch := &rooms{t: t, all: map[string]*room{}}
	together(12, func(worker int) {
		for range 20 {
			if !t.visit(t.client(worker), feeds[worker%2], watch) {
				return
			}
		}
	})
	t.settle(feeds...)
	for _, f := range feeds {
		if n := len(f.state().queues); n != 1 {
			t.Errorf("%d locks are in use at the end, want the last write's only", n)
		}
	}
}

// visit takes one entry through its life. Some give up while they wait.
func (t *trial) visit(s store.Store, f *feed, watch *rooms) (ok bool) {
	e, _, err := s.Enqueue(t.ctx, t.visitor())
	if err != nil {
		t.Errorf("Enqueue: %v", err)
		return false
	}
	why := lock.Released
	switch {
	case rand.IntN(5) == 0:
		why = lock.WaitTimeout
	case !t.comesToHold(f, e):
		return false
	default:
		watch.enter(e)
		if err := s.Renew(t.ctx, e); err != nil {
			t.Errorf("Renew of a holder: %v", err)
		}
		watch.leave(e)
	}
	if err := s.Remove(t.ctx, e, why); err != nil {
		t.Errorf("Remove: %v", err)
		return false
	}
	return true
}

// comesToHold waits until an entry holds, for as long as those before it leave: on a machine with
// much to do that can take long.
func (t *trial) comesToHold(f *feed, e *lock.Entry) bool {
	before := t.before(e, f.state().entries)
	for !f.holds(t.Late, e.ID) {
		now := t.before(e, f.state().entries)
		if len(now) == 0 || len(now) >= len(before) {
			inStore := t.before(e, func(r lock.Ref) []*lock.Entry { return t.queue(t.A, r) })
			t.Errorf("an entry at %d does not come to hold behind %v; the store has %v", e.Number, now, inStore)
			return false
		}
		before = now
	}
	return true
}

// before returns the numbers of the entries that come before e in its queues.
func (t *trial) before(e *lock.Entry, queue func(lock.Ref) []*lock.Entry) (all []uint64) {
	for _, c := range e.Claims {
		for _, other := range queue(t.ref(c.Name)) {
			if other.Number < e.Number {
				all = append(all, other.Number)
			}
		}
	}
	return all
}

// visitor returns an entry on a semaphore of two, or on one or two of three
// locks for reading or writing.
func (t *trial) visitor() *lock.Entry {
	if rand.IntN(4) == 0 {
		e := t.draft("semaphore")
		e.Claims[0].Mode, e.Claims[0].Limit = lock.Semaphore, 2
		return e
	}
	e := t.draft(pick([]string{"a", "b", "c"}, 1+rand.IntN(2))...)
	for i := range e.Claims {
		e.Claims[i].Mode = []lock.Mode{lock.Exclusive, lock.Shared}[rand.IntN(2)]
	}
	return e
}
