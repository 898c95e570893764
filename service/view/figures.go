package view

import (
	"container/list"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/deadlock"
)

const (
	maxFigures = 20_000 // locks whose figures are kept
	maxSamples = 128    // of the latest waits and holds of a lock
)

// Figures tell how a lock was used, as one replica saw it since it started.
type Figures struct {
	Acquisitions uint64
	Expirations  uint64
	Newest       uint64 // the last fence that was handed out
	Wait, Hold   Percentiles
}

// Percentiles of the latest samples; all 0 if there are none.
type Percentiles struct {
	P50, P90, P99 time.Duration
	Samples       int // of which these are
}

// Step is how many samples were longer than the step before, and at most as long as this one.
type Step struct {
	UpTo  time.Duration
	Count int
}

// figures are the figures of the locks used last. If there are too many, the tenant
// that has most loses those of its lock that was used least recently. It is not safe
// for concurrent use.
type figures struct {
	most     int // locks
	accounts accounts
	byLock   map[lock.Ref]*list.Element // of the accounts' recent
	shares   *shares
	past     *int // how many events are kept of all locks
}

type usage struct {
	ref          lock.Ref
	acquisitions uint64
	expirations  uint64
	newest       uint64
	use          Use
	waits, holds samples
	past         pasts
	staleWrites  uint64
}

func newFigures(all accounts, most int) figures {
	return figures{most: most, accounts: all, byLock: map[lock.Ref]*list.Element{}, shares: &shares{}, past: new(int)}
}

func (f figures) granted(r lock.Ref, number uint64, waited time.Duration, now time.Time) {
	u := f.of(r)
	u.use.take(now)
	u.acquisitions++
	u.newest = max(u.newest, number)
	u.waits.add(waited)
}

// freed notes that nobody holds the lock any more.
func (f figures) freed(r lock.Ref, now time.Time) {
	if el := f.byLock[r]; el != nil {
		el.Value.(*usage).use.free(now)
	}
}

// freedMeanwhile notes of which locks nobody is a holder any more in a table built anew.
func (f figures) freedMeanwhile(t *deadlock.Table, now time.Time) {
	for r := range f.byLock {
		if q := t.Queue(r); q == nil || q.Holders() == 0 {
			f.freed(r, now)
		}
	}
}

func (f figures) ended(r lock.Ref, why lock.Reason, lasted time.Duration) {
	u := f.of(r)
	if why == lock.Expired {
		u.expirations++
	}
	u.holds.add(lasted)
}

func (f figures) of(r lock.Ref) *usage {
	a := f.accounts.of(r.Tenant)
	if el := f.byLock[r]; el != nil {
		a.recent.MoveToFront(el)
		return el.Value.(*usage)
	}
	if f.shares.total >= f.most {
		f.forget(f.shares.largest())
	}
	u := &usage{ref: r}
	f.byLock[r] = a.recent.PushFront(u)
	f.accounts[r.Tenant] = a // it may have been closed
	f.shares.change(&a.figures, 1)
	return u
}

// forget drops what is known of the account's lock that was used least recently.
func (f figures) forget(a *account) {
	u := a.recent.Remove(a.recent.Back()).(*usage)
	delete(f.byLock, u.ref)
	*f.past -= len(u.past.ring)
	f.shares.change(&a.figures, -1)
	f.accounts.close(a)
}

func (f figures) read(r lock.Ref) Figures {
	el := f.byLock[r]
	if el == nil {
		return Figures{}
	}
	u := el.Value.(*usage)
	return Figures{
		Acquisitions: u.acquisitions, Expirations: u.expirations, Newest: u.newest,
		Wait: u.waits.percentiles(), Hold: u.holds.percentiles(),
	}
}

// newest returns the last fence of the lock that was handed out, 0 if unknown.
func (f figures) newest(r lock.Ref) uint64 {
	if el := f.byLock[r]; el != nil {
		return el.Value.(*usage).newest
	}
	return 0
}

// lately returns the last fence of the lock that was handed out, and for how long it was held
// lately.
func (f figures) lately(r lock.Ref) (newest uint64, use Use) {
	if el := f.byLock[r]; el != nil {
		u := el.Value.(*usage)
		return u.newest, u.use
	}
	return 0, Use{}
}

// samples are the latest durations, in milliseconds, as a ring.
type samples struct {
	ring []float32
	next int
}

func (s *samples) add(d time.Duration) {
	ms := float32(max(d, 0).Seconds() * 1000)
	if len(s.ring) < maxSamples {
		s.ring = append(s.ring, ms)
		return
	}
	s.ring[s.next] = ms
	s.next = (s.next + 1) % maxSamples
}

func (s *samples) percentiles() Percentiles {
	if len(s.ring) == 0 {
		return Percentiles{}
	}
	sorted := slices.Sorted(slices.Values(s.ring))
	at := func(p float64) time.Duration {
		i := max(int(math.Ceil(p*float64(len(sorted))))-1, 0) // by nearest rank: of two the half is the lesser
		return time.Duration(float64(sorted[i]) * float64(time.Millisecond))
	}
	return Percentiles{P50: at(0.5), P90: at(0.9), P99: at(0.99), Samples: len(sorted)}
}

// Distribution returns how the latest waits and holds of a lock are distributed.
func (v *View) Distribution(r lock.Ref) (waits, holds []Step) {
	v.mu.RLock()
	el := v.figures.byLock[r]
	if el == nil {
		v.mu.RUnlock()
		return nil, nil
	}
	u := el.Value.(*usage)
	w, h := slices.Clone(u.waits.ring), slices.Clone(u.holds.ring)
	v.mu.RUnlock()
	return steps(w), steps(h)
}

// steps counts samples in steps of 1, 2.5 and 5, from a millisecond on. Those without any are
// left out.
func steps(ms []float32) (out []Step) {
	slices.Sort(ms)
	factors, bound := []float64{2.5, 2, 2}, 1.0
	for at := 0; len(ms) > 0; at++ {
		n := sort.Search(len(ms), func(i int) bool { return float64(ms[i]) > bound })
		if n > 0 {
			out = append(out, Step{UpTo: time.Duration(bound * float64(time.Millisecond)), Count: n})
		}
		ms, bound = ms[n:], bound*factors[at%len(factors)]
	}
	return out
}
