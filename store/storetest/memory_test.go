package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// callLimit is how long a call to a memory that was cut off takes.
const callLimit = 300 * time.Millisecond

// memory is the reference store: everything under one mutex. It exists to test
// the suite, and it can be told to have a bug.
type memory struct {
	bug bug

	mu         sync.Mutex
	number     uint64
	entries    map[key]*kept
	ended      []store.Ended
	used       map[lock.Ref]lock.Reason // by tenant and id: keys whose entries ended
	leases     map[int64]*lease
	idle       []int64 // leases to use again; only bugs do that
	followers  map[*subscription]struct{}
	distrusted bool
	old        []*lock.Entry // for a bug that reads the past
	lastLost   time.Time     // for a bug that spreads

	stop chan struct{}
	done chan struct{}
}

// key is what an entry is found by: an id counts within its tenant and first lock.
type key struct {
	lock.Ref
	id lock.ID
}

type kept struct {
	entry lock.Entry
	lease *lease
}

type lease struct {
	ttl time.Duration
	end time.Time
}

func newMemory(b bug) *memory {
	m := &memory{
		bug: b, entries: map[key]*kept{}, used: map[lock.Ref]lock.Reason{}, leases: map[int64]*lease{}, followers: map[*subscription]struct{}{},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go m.expire()
	return m
}

func (m *memory) Close() {
	close(m.stop)
	<-m.done
}

func keyOf(e *lock.Entry) key {
	return key{lock.Ref{Tenant: e.Tenant, Name: e.Name()}, e.ID}
}

// find returns exactly the entry e, or nil.
func (m *memory) find(e *lock.Entry) *kept {
	if k := m.entries[keyOf(e)]; k != nil && k.entry.Number == e.Number {
		return k
	}
	return m.findWrongly(e)
}

// insert writes e, unless its id is there already or used up.
func (m *memory) insert(e *lock.Entry) (placed *lock.Entry, written bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	why, used := m.used[keyUse(e)]
	if m.bug == keyCheckedApart {
		m.mu.Unlock()
		sleep(context.Background(), time.Millisecond)
		m.mu.Lock()
	}
	if found := m.existing(e); found != nil {
		return found, m.bug == retryWrote, nil
	}
	if used && e.Resumable() && m.bug != keyUsedTwice {
		return nil, false, lock.LostBecause(why)
	}
	m.number = m.nextNumber(e)
	stored := m.stored(e)
	stored.Number = m.number
	l := m.grant(&stored)
	m.entries[keyOf(&stored)] = &kept{stored, l}
	m.publish(store.Change{Joined: m.told(stored)})
	copied := stored
	return &copied, true, nil
}

func keyUse(e *lock.Entry) lock.Ref { return lock.Ref{Tenant: e.Tenant, Name: string(e.ID)} }

// byKey returns the entry of a key, whatever its locks are.
func (m *memory) byKey(e *lock.Entry) *kept {
	for _, k := range m.entries {
		if e.Resumable() && k.entry.ID == e.ID && k.entry.Tenant == e.Tenant && m.bug != keyPerLock {
			return k
		}
	}
	return m.entries[keyOf(e)]
}

func (m *memory) existing(e *lock.Entry) *lock.Entry {
	found := m.byKey(e)
	if m.bug == tenantsShareIDs && found == nil {
		found = m.entries[key{lock.Ref{Tenant: "acme", Name: e.Name()}, e.ID}]
	}
	if found == nil || m.bug == setRetriedTwice && e.Set {
		return nil
	}
	if m.bug == retryMovesBack {
		m.number++
		found.entry.Number = m.number
	}
	if m.bug == retryOverwrites {
		found.entry.Holder = e.Holder
	}
	copied := found.entry
	return &copied
}

// grant gives the entry a lease of its own.
func (m *memory) grant(e *lock.Entry) *lease {
	if l := m.grantWrongly(e); l != nil {
		return l
	}
	l := &lease{ttl: e.TTL, end: time.Now().Add(m.lifetime(e.TTL))}
	e.Handle = int64(e.Number)
	m.leases[e.Handle] = l
	return l
}

func (m *memory) remove(e *lock.Entry, why lock.Reason, while []*lock.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.find(e)
	if k == nil || m.bug == lostSpreads && time.Since(m.lastLost) < time.Millisecond {
		return m.lost(why)
	}
	if m.bug != ignoresWhile && slices.ContainsFunc(while, func(e *lock.Entry) bool { return m.find(e) == nil }) {
		return &lock.Error{Code: lock.Changed}
	}
	m.number++
	m.drop(k, why)
	switch {
	case why != lock.Withdrawn:
		m.remember(k.entry.ID, why)
	case m.bug == withdrawnRemembered:
		m.remember(k.entry.ID, lock.Released)
	}
	return nil
}

func (m *memory) remember(id lock.ID, why lock.Reason) {
	if m.bug != endsForgotten {
		m.ended = append(m.ended, store.Ended{ID: id, Reason: why, At: time.Now()})
	}
}

// drop takes the entry away at the current number.
func (m *memory) drop(k *kept, why lock.Reason) {
	if why != lock.Withdrawn && (why != lock.Expired || m.bug != keyForgetsExpiry) || m.bug == withdrawnUsesUp {
		m.used[keyUse(&k.entry)] = why
	}
	delete(m.entries, keyOf(&k.entry))
	m.leaveBehind(k)
	if m.bug == reasonLost || m.bug == withdrawnExpires && why == lock.Withdrawn {
		why = lock.Expired
	}
	m.publish(store.Change{Left: k.entry.ID, Reason: why})
}

func (m *memory) refresh(e *lock.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bug == refreshTrustsLease {
		if l := m.leases[e.Handle]; l != nil && l.end.After(time.Now()) {
			l.end = time.Now().Add(l.ttl)
			return nil
		}
	}
	if l := m.leases[e.Handle]; l != nil && m.bug == leaseInherited {
		l.end = time.Now().Add(l.ttl)
	}
	k := m.find(e)
	if k == nil {
		return m.lost("")
	}
	if m.bug != refreshForgets {
		k.lease.end = time.Now().Add(k.lease.ttl)
	}
	return nil
}

func (m *memory) remaining(e *lock.Entry) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.find(e)
	switch {
	case k == nil && m.bug == remainsWhenGone:
		return time.Millisecond, nil
	case k == nil:
		return 0, m.lost("")
	case m.bug == remainsForEver:
		return e.TTL, nil
	}
	return max(0, time.Until(k.lease.end)), nil
}

func (m *memory) queue(r lock.Ref) ([]*lock.Entry, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inQueue(r), m.number
}

func (m *memory) inQueue(r lock.Ref) []*lock.Entry {
	var all []*lock.Entry
	for _, k := range m.entries {
		if k.entry.Tenant == r.Tenant && slices.ContainsFunc(m.claims(k.entry), func(c lock.Claim) bool { return m.matches(c.Name, r.Name) }) {
			copied := k.entry
			all = append(all, &copied)
		}
	}
	slices.SortFunc(all, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	m.misorder(r.Name, all)
	return all
}

func (m *memory) matches(name, asked string) bool {
	if m.bug == namesByPrefix {
		return strings.HasPrefix(name, asked)
	}
	return name == asked
}

// snapshot is everything there is. The caller holds the mutex.
func (m *memory) snapshot() store.Snapshot {
	s := store.Snapshot{Number: m.number}
	for _, k := range m.entries {
		copied := k.entry
		s.Entries = append(s.Entries, &copied)
	}
	slices.SortFunc(s.Entries, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	switch n := len(s.Entries); {
	case m.bug == viewLacksNewest && n > 0:
		s.Entries = s.Entries[:n-1]
	case m.bug == viewIsOnePage:
		s.Entries = s.Entries[:min(n, 1000)]
	}
	return s
}

// expire removes entries whose leases have ended, until Close.
func (m *memory) expire() {
	defer close(m.done)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case now := <-tick.C:
			m.expireAt(now)
		}
	}
}

func (m *memory) expireAt(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.entries {
		if now.Before(k.lease.end) || m.bug == neverExpires {
			continue
		}
		m.number++
		if !m.expireWrongly(k) {
			m.drop(k, m.expiryReason())
			m.remember(k.entry.ID, lock.Expired)
		}
	}
}

// subscription is one follower's changes that it was not told yet.
type subscription struct {
	mu    sync.Mutex
	runs  []run
	ready chan struct{}
}

// run is the changes of one number.
type run struct {
	upTo    uint64
	changes []store.Change
}

func (s *subscription) add(r run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, r)
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *subscription) take() []run {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.runs
	s.runs = nil
	return taken
}

// publish tells all followers. The caller holds the mutex.
func (m *memory) publish(changes ...store.Change) {
	for s := range m.followers {
		m.tell(s, run{m.number, changes})
	}
}

func (m *memory) subscribe() (*subscription, store.Snapshot, []store.Ended) {
	s := &subscription{ready: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	view, ended := m.snapshot(), slices.Clone(m.ended)
	if m.bug == feedHasSeam {
		m.mu.Unlock()
		sleep(context.Background(), time.Millisecond) // the bug
		m.mu.Lock()
	}
	m.followers[s] = struct{}{}
	return s, view, ended
}

func (m *memory) unsubscribe(s *subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.followers, s)
}

// unavailable is the answer of a client that cannot or may not ask.
func unavailable(ambiguous bool) error {
	return &lock.Error{Code: lock.StoreUnavailable, Ambiguous: ambiguous, Cause: errors.New("cut off")}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
