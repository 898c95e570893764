package batch

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Backlog bounds the pending writes, in number and in bytes. It rejects a write over a bound on
// arrival. A zero size is the default.
type Backlog struct {
	PerKey, PerTenant, InAll Size
}

// Size is the size of some writes.
type Size struct{ Writes, Bytes int }

func (s *Size) add(writes, bytes int) { s.Writes, s.Bytes = s.Writes+writes, s.Bytes+bytes }

// within reports whether one more write of the given bytes stays in the bound.
func (s Size) within(bound Size, bytes int) bool {
	return s.Writes < bound.Writes && s.Bytes+bytes <= bound.Bytes
}

func (b Backlog) orDefault() Backlog {
	or := func(s *Size, writes, bytes int) {
		if *s == (Size{}) {
			*s = Size{writes, bytes}
		}
	}
	or(&b.PerKey, 1<<14, 16<<20)
	or(&b.PerTenant, 1<<15, 32<<20)
	or(&b.InAll, 1<<16, 128<<20)
	return b
}

// overloaded returns the error of a write that is rejected because too many are pending.
func overloaded() *lock.Error {
	return &lock.Error{
		Code: lock.Overloaded, Detail: "too many requests are waiting to be written; " +
			"retry after Retry-After",
		RetryAfter: time.Second,
	}
}

// pending holds the writes that are in no batch yet. Its owner locks it.
//
// The writes that share a key form a chain, in the order of their arrival. A write is ready when
// it is the first of all its chains. So choosing a batch takes constant time for each write in
// it, and a long chain of joins of one lock delays nothing else. Tenants take turns.
type pending[P, O any] struct {
	limits  Limits
	chains  map[string]*chain[P, O]
	tenants map[string]*share[P, O]
	turns   turns[P, O]
	all     Size

	ready   int
	blocked int // not ready

	// Lingering writes can wait until the generation changes.
	generation uint64
	lingering  int // writes that can still wait
	patient    int // ready ones among them
}

// state is pending's record of a write.
type state[P, O any] struct {
	links      []link[P, O]
	share      *share[P, O] // its tenant's
	behind     int          // the number of chains in which it is not first
	prev, next *Write[P, O] // of the ready ones of its tenant
	generation uint64       // it can wait while this equals pending's; 0: it cannot
	ready, in  bool
}

func newPending[P, O any](limits Limits) *pending[P, O] {
	return &pending[P, O]{
		limits: limits, chains: map[string]*chain[P, O]{}, tenants: map[string]*share[P, O]{},
		turns: turns[P, O]{ops: max(1, limits.Ops/turnsOfBatch)}, generation: 1,
	}
}

// urgent reports whether a ready write does not linger.
func (p *pending[P, O]) urgent() bool { return p.ready > p.patient }

// reject returns an error for a write over a bound.
func (p *pending[P, O]) reject(w *Write[P, O]) error {
	b := p.limits.Pending
	fits := p.all.within(b.InAll, w.Bytes)
	if s := p.tenants[w.Tenant]; s != nil {
		fits = fits && s.size.within(b.PerTenant, w.Bytes)
	}
	for _, key := range w.Keys {
		if c := p.chains[key]; c != nil {
			fits = fits && c.size.within(b.PerKey, w.Bytes)
		}
	}
	if fits || w.Must {
		return nil
	}
	return overloaded()
}

// reserve counts a write that arrives later. With -1 and minus its bytes it stops counting it.
func (p *pending[P, O]) reserve(w *Write[P, O], writes, bytes int) {
	p.count(w.Tenant, writes, bytes)
	for _, key := range w.Keys {
		p.countKey(key, writes, bytes)
	}
}

// count adds writes to the size of a tenant; negative numbers subtract.
func (p *pending[P, O]) count(tenant string, writes, bytes int) *share[P, O] {
	p.all.add(writes, bytes)
	s := p.tenants[tenant]
	if s == nil {
		s = &share[P, O]{}
		p.tenants[tenant] = s
	}
	if s.size.add(writes, bytes); s.size.Writes == 0 {
		delete(p.tenants, tenant)
	}
	return s
}

// add puts a write at the end of the chains of its keys.
func (p *pending[P, O]) add(w *Write[P, O]) {
	s := &w.state
	s.in = true
	if w.Lingers {
		s.generation = p.generation
		p.lingering++
	}
	s.links = make([]link[P, O], 0, len(w.Keys)) // never grows, because links point at each other
	for _, key := range w.Keys {
		p.append(w, key)
	}
	s.share = p.count(w.Tenant, 1, w.Bytes)
	if p.blocked++; s.behind == 0 {
		p.makeReady(w)
	}
}

func (p *pending[P, O]) makeReady(w *Write[P, O]) {
	p.blocked--
	w.state.ready = true
	p.turns.add(w)
	p.countReady(w, 1)
}

func (p *pending[P, O]) countReady(w *Write[P, O], by int) {
	p.ready += by
	if w.state.generation == p.generation {
		p.patient += by
	}
}

// hurry makes all writes urgent.
func (p *pending[P, O]) hurry() {
	p.generation++
	p.lingering, p.patient = 0, 0
}

// remove removes a write from everything, and returns the writes that become ready.
func (p *pending[P, O]) remove(w *Write[P, O]) (freed []*Write[P, O]) {
	if w.state.ready {
		p.turns.remove(w)
		p.countReady(w, -1)
	} else {
		p.blocked--
	}
	if w.state.generation == p.generation {
		p.lingering--
	}
	p.count(w.Tenant, -1, -w.Bytes)
	for i := range w.state.links {
		if next := p.unlink(&w.state.links[i]); next != nil {
			freed = append(freed, next)
		}
	}
	w.state = state[P, O]{}
	return freed
}

func (p *pending[P, O]) release(freed []*Write[P, O]) {
	for _, w := range freed {
		p.makeReady(w)
	}
}

// take removes the writes of the next batch. A write that becomes ready by that shares a key with
// one of them, so it waits for the batch after it.
func (p *pending[P, O]) take() (taken []*Write[P, O]) {
	var freed []*Write[P, O]
	ops, bytes := 0, 0
	for w := p.turns.next(); w != nil; w = p.turns.next() {
		ops, bytes = ops+w.Ops, bytes+w.Bytes
		if len(taken) > 0 && (ops > p.limits.Ops || bytes > p.limits.Bytes) {
			break
		}
		w.state.share.credit -= w.Ops
		freed = append(freed, p.remove(w)...)
		taken = append(taken, w)
	}
	p.release(freed)
	return taken
}

// withdraw removes a write, and reports whether it was pending.
func (p *pending[P, O]) withdraw(w *Write[P, O]) bool {
	if !w.state.in {
		return false
	}
	p.release(p.remove(w))
	return true
}

// drain removes all writes.
func (p *pending[P, O]) drain() (all []*Write[P, O]) {
	for p.ready > 0 {
		all = append(all, p.take()...)
	}
	return all
}
