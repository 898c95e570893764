package service_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// shelf is a store in memory, shared by any number of replicas, each with a
// client of its own. Leases end by timers: in a bubble of testing/synctest
// everything happens at its exact time.
type shelf struct {
	mu         sync.Mutex
	number     uint64
	entries    map[shelfKey]*kept
	ended      []store.Ended
	runs       []run         // everything that ever happened, for the feeds
	grown      chan struct{} // closed and replaced with every run
	distrusted uint64
}

type shelfKey struct {
	lock.Ref
	id lock.ID
}

type kept struct {
	entry lock.Entry
	lease *time.Timer
	end   time.Time
}

// run is what happened at one number.
type run struct {
	at     time.Time
	upTo   uint64
	change store.Change
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{number: 100, entries: map[shelfKey]*kept{}, grown: make(chan struct{})}
	t.Cleanup(s.stop)
	return s
}

func (s *shelf) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.entries {
		k.lease.Stop()
	}
}

func keyOf(e *lock.Entry) shelfKey {
	return shelfKey{lock.Ref{Tenant: e.Tenant, Name: e.Name()}, e.ID}
}

func (s *shelf) find(e *lock.Entry) *kept {
	if k := s.entries[keyOf(e)]; k != nil && k.entry.Number == e.Number {
		return k
	}
	return nil
}

// insert writes e and starts its lease, unless its id is there already.
func (s *shelf) insert(e *lock.Entry) (placed *lock.Entry, written bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.distrusted != 0 {
		return nil, false, unavailable(false)
	}
	if k := s.entries[keyOf(e)]; k != nil {
		found := k.entry
		return &found, false, nil
	}
	s.number++
	k := &kept{entry: *e, end: time.Now().Add(e.TTL)}
	k.entry.Number, k.entry.Handle = s.number, int64(s.number)
	mine, told := k.entry, k.entry
	k.lease = time.AfterFunc(e.TTL, func() {
		_ = s.end(&mine, lock.Expired) // it may just have left otherwise
	})
	s.entries[keyOf(e)] = k
	s.publish(store.Change{Joined: &told})
	answer := mine
	return &answer, true, nil
}

// end takes the entry away, if it is there.
func (s *shelf) end(e *lock.Entry, why lock.Reason, while ...*lock.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(e)
	if k == nil {
		return &lock.Error{Code: lock.Lost}
	}
	if slices.ContainsFunc(while, func(e *lock.Entry) bool { return s.find(e) == nil }) {
		return &lock.Error{Code: lock.Changed}
	}
	k.lease.Stop()
	delete(s.entries, keyOf(e))
	s.number++
	if why != lock.Expired {
		s.ended = append(s.ended, store.Ended{ID: e.ID, Reason: why, At: time.Now()})
	}
	s.publish(store.Change{Left: e.ID, Reason: why})
	return nil
}

func (s *shelf) refresh(e *lock.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(e)
	if k == nil {
		return &lock.Error{Code: lock.Lost}
	}
	k.lease.Reset(e.TTL)
	k.end = time.Now().Add(e.TTL)
	return nil
}

func (s *shelf) remaining(e *lock.Entry) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(e); k != nil {
		return time.Until(k.end), nil
	}
	return 0, &lock.Error{Code: lock.Lost}
}

// queue returns copies of the entries that claim the lock; the zero Ref stands
// for all entries.
func (s *shelf) queue(r lock.Ref) ([]*lock.Entry, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted(r), s.number
}

func (s *shelf) sorted(r lock.Ref) []*lock.Entry {
	var all []*lock.Entry
	for _, k := range s.entries {
		claims := slices.ContainsFunc(k.entry.Claims, func(c lock.Claim) bool { return c.Name == r.Name })
		if r == (lock.Ref{}) || k.entry.Tenant == r.Tenant && claims {
			found := k.entry
			all = append(all, &found)
		}
	}
	slices.SortFunc(all, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// snapshot returns everything, the remembered ends, and how many runs led to it.
func (s *shelf) snapshot() (store.Snapshot, []store.Ended, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Snapshot{Number: s.number, Entries: s.sorted(lock.Ref{})}, slices.Clone(s.ended), len(s.runs)
}

func (s *shelf) distrust(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.distrusted = max(s.distrusted, number)
}

// restoreBackup drops all entries and goes back to an earlier number.
func (s *shelf) restoreBackup(number uint64) {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number, s.entries, s.ended, s.runs = number, map[shelfKey]*kept{}, nil, nil
}

// publish tells all feeds. The caller holds the mutex.
func (s *shelf) publish(c store.Change) {
	s.runs = append(s.runs, run{time.Now(), s.number, c})
	close(s.grown)
	s.grown = make(chan struct{})
}

// runAt returns the run with the index, if there is one yet, and a channel that
// is closed when there are more runs.
func (s *shelf) runAt(i int) (r run, ok bool, grown <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i < len(s.runs) {
		return s.runs[i], true, s.grown
	}
	return run{}, false, s.grown
}

// ids are those of all entries, in order.
func (s *shelf) ids() []lock.ID {
	entries, _ := s.queue(lock.Ref{})
	ids := make([]lock.ID, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// reasonOf returns the recorded reason for an entry's end, or "".
func (s *shelf) reasonOf(id lock.ID) lock.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ended {
		if e.ID == id && e.Reason != lock.Withdrawn {
			return e.Reason
		}
	}
	return ""
}

// occupy writes an entry that stays, as another replica would have.
func (s *shelf) occupy(t *testing.T, name string) *lock.Entry {
	t.Helper()
	e, _, err := s.insert(&lock.Entry{
		ID: lock.ID("by-hand-on-" + name), Tenant: "acme", Holder: "somebody", TTL: time.Hour,
		Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}, EnqueuedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
