package memory

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// withdrawnError reports a withdrawn entry of the key. A client that knows of it can use the key.
// An earlier attempt that arrives late does not know of it.
type withdrawnError struct{ number uint64 }

func (e *withdrawnError) Error() string {
	return fmt.Sprintf("the entry of the key was withdrawn at %d", e.number)
}

// put writes e as the last of one call's attempts. The call knows the number of the last
// withdrawal of an entry with its key, or none. put writes nothing if e's id exists or is used
// up, if the attempt was excluded or the closures have changed meanwhile, or if the client knows a
// later number: then the past is missing. It also writes nothing into data of another form.
func (s *Server) put(
	attempts []Attempt, withdrawn, known uint64, e *lock.Entry,
) (placed *lock.Entry, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	this := attempts[len(attempts)-1]
	if known > s.before() {
		s.distrusted = max(s.distrusted, known)
	}
	if s.distrusted != 0 || s.foreign {
		return nil, s.number, refusal()
	}
	if err := refusedForm(s.form); err != nil {
		return nil, s.number, err
	}
	if found := s.entries[keyOf(e)]; found != nil {
		return copied(found.entry), s.number, nil
	}
	if s.attempts[this] == excluded {
		return nil, s.number, store.Unavailable(errors.New("the attempt was given up"), "put", false)
	}
	wroteBefore := slices.ContainsFunc(
		attempts,
		func(a Attempt) bool { return s.attempts[a] == wrote },
	)
	if err := s.gone(e, wroteBefore, withdrawn); err != nil {
		return nil, s.number, err
	}
	if s.small.kept[store.ClosuresKey(e.Tenant)].version != e.Admitted {
		return nil, s.number, store.Unavailable(store.ErrClosuresChanged, string(Put), false)
	}
	s.attempts[this] = wrote
	return s.insert(this, e), s.number, nil
}

// gone returns why a missing entry must not be written.
func (s *Server) gone(e *lock.Entry, wroteBefore bool, withdrawn uint64) error {
	r := s.records[keyOf(e)]
	switch ended := r != nil && r.ended.Reason != lock.Withdrawn; {
	case ended && (wroteBefore || e.Resumable()):
		return lock.LostBecause(r.ended.Reason)
	case wroteBefore: // and it was withdrawn, or the record of that is gone
		return lock.LostBecause(lock.Unknown)
	case r != nil && e.Resumable() && r.number != withdrawn:
		return &withdrawnError{r.number}
	}
	return nil
}

func (s *Server) insert(a Attempt, e *lock.Entry) *lock.Entry {
	s.advance(keysOf(e)...)
	k := &kept{entry: *e, end: time.Now().Add(e.TTL)}
	k.entry.Number, k.entry.Handle = s.number, int64(a)
	k.entry.Lingers, k.entry.Admitted = false, 0
	mine := k.entry
	k.lease = time.AfterFunc(e.TTL, func() { s.expire(&mine) })
	s.entries[keyOf(e)] = k
	s.publish(store.Change{Number: s.number, Joined: copied(k.entry)})
	return copied(k.entry)
}

// takeBack makes sure that none of the attempts writes anything any more, and removes what one of
// them has written.
func (s *Server) takeBack(attempts []Attempt, e *lock.Entry) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range attempts {
		if s.attempts[a] == unknown {
			s.attempts[a] = excluded
		}
	}
	if k := s.entries[keyOf(e)]; k != nil && slices.Contains(attempts, Attempt(k.entry.Handle)) {
		s.drop(k, lock.Withdrawn, nil)
	}
	return s.number
}

// remove removes the entry, unless this very removal already has.
func (s *Server) remove(
	a Attempt,
	e *lock.Entry,
	why lock.Reason,
	while []*lock.Entry,
) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removals[a] {
		return s.number, nil
	}
	k := s.find(e)
	if k == nil {
		return s.number, store.Lost("the entry is not there")
	}
	if slices.ContainsFunc(while, func(e *lock.Entry) bool { return s.find(e) == nil }) {
		return s.number, lock.Errorf(
			lock.Changed,
			"what the removal was decided by is not there any more",
		)
	}
	s.removals[a] = true
	s.drop(k, why, nil)
	return s.number, nil
}

// End removes the entry as an operator would, and reports whether it existed.
func (s *Server) End(e *lock.Entry, why lock.Reason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(e)
	if k != nil {
		s.drop(k, why, nil)
	}
	return k != nil
}

// drop removes the entry and records the reason, with an operator's note.
func (s *Server) drop(k *kept, why lock.Reason, note *lock.Note) {
	k.lease.Stop()
	delete(s.entries, keyOf(&k.entry))
	s.advance(entryKey(&k.entry))
	if why != lock.Expired {
		s.remember(k.entry, why, note)
	}
	s.publish(store.Change{Number: s.number, Left: k.entry.ID, Reason: why, Note: note})
}

// expire ends an entry whose lease is over. Before it, it ends older entries whose leases are
// over too: timers of one instant fire in any order, and the same calls must give the same
// history.
func (s *Server) expire(e *lock.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.find(e), time.Now()
	if s.stopped || k == nil || now.Before(k.end) { // it was renewed as the timer fired
		return
	}
	for _, due := range s.sorted(func(other *lock.Entry) bool {
		return other.Number <= e.Number && !now.Before(s.find(other).end)
	}) {
		s.expired(due)
	}
}

func (s *Server) expired(e *lock.Entry) {
	s.drop(s.find(e), lock.Expired, nil)
	if s.cfg.ExpiryRecord == 0 {
		s.remember(*e, lock.Expired, nil)
		return
	}
	time.AfterFunc(s.cfg.ExpiryRecord, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.stopped && s.entries[keyOf(e)] == nil {
			s.remember(*e, lock.Expired, nil)
		}
	})
}

// remember records an end, the first of an id. A withdrawal does not count: it is recorded only
// so that a feed which missed it does not take it for an expiry.
func (s *Server) remember(e lock.Entry, why lock.Reason, note *lock.Note) {
	k := keyOf(&e)
	if before := s.records[k]; before != nil {
		if before.ended.Reason != lock.Withdrawn {
			return
		}
		before.forget.Stop()
	}
	s.records[k] = s.forgetting(k, s.number, store.Ended{
		ID: e.ID, Tenant: e.Tenant, Reason: why, At: time.Now(),
		Was: store.Past{Text: s.pasts.Of(&e, int64(e.Number-s.floor)), Floor: s.floor}, Note: note,
	})
}

// forgetting returns a record that will be dropped.
func (s *Server) forgetting(k key, number uint64, ended store.Ended) *record {
	r := &record{ended: ended, number: number}
	r.forget = time.AfterFunc(time.Until(ended.At.Add(s.cfg.Remember)), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.records[k] == r {
			delete(s.records, k)
		}
	})
	return r
}

func (s *Server) renew(e *lock.Entry) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(e)
	if k == nil {
		return s.number, store.Lost("the entry is not there")
	}
	k.lease.Reset(k.entry.TTL)
	k.end = time.Now().Add(k.entry.TTL)
	return s.number, nil
}

func (s *Server) remaining(e *lock.Entry) (left time.Duration, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(e)
	if k == nil {
		return 0, s.number, store.Lost("the entry is not there")
	}
	return max(0, time.Until(k.end)), s.number, nil
}
