package memory

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// shutOutError means that an attempt was shut out: the client's writes have another number now.
type shutOutError struct{ writer int64 }

func (*shutOutError) Error() string { return "the attempt was shut out" }
func (*shutOutError) Unwrap() error { return batch.ErrNotSent }

// put is an attempt to write an entry.
type put struct {
	entry     *lock.Entry
	handle    int64
	withdrawn uint64 // the number of the last withdrawal of an entry with its key that is known; or 0

	client, writer int64 // see [Server.shutOut]
}

// put makes the attempt for a client that knows a number. It writes nothing if the entry's id
// exists or is used up, or if the closures have changed meanwhile: that is a conflict. Nor does it
// if it was shut out, if the client knows a later number, because then the past is missing, or into
// data of another form.
func (s *Server) put(p put, known uint64) (placed *lock.Entry, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known > s.before() {
		s.distrusted = max(s.distrusted, known)
	}
	e := p.entry
	withdrawn, err := s.gone(e)
	switch {
	case s.distrusted != 0 || s.foreign:
		return nil, s.number, refusal()
	case refusedForm(s.form) != nil:
		return nil, s.number, refusedForm(s.form)
	case p.writer != s.writers[p.client]:
		return nil, s.number, &shutOutError{s.writers[p.client]}
	case err != nil, withdrawn != p.withdrawn, s.entries[keyOf(e)] != nil,
		s.values.kept[engine.KeyOf(store.ClosuresKey(e.Tenant))].number != e.Admitted:
		return nil, s.number, engine.ErrConflict
	}
	return s.insert(p.handle, e), s.number, nil
}

// gone returns why the key of a missing entry must not be used, or the number of the withdrawal
// that has freed it.
func (s *Server) gone(e *lock.Entry) (withdrawn uint64, err error) {
	switch r := s.records[keyOf(e)]; {
	case r == nil || !e.Resumable():
		return 0, nil
	case r.ended.Reason != lock.Withdrawn:
		return 0, lock.LostBecause(r.ended.Reason)
	default:
		return r.number, nil
	}
}

// lookFor returns the entry with e's id, or nil, and then what gone says.
func (s *Server) lookFor(e *lock.Entry) (found *lock.Entry, withdrawn, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.entries[keyOf(e)]; found != nil {
		return copied(found.entry), 0, s.number, nil
	}
	withdrawn, err = s.gone(e)
	return nil, withdrawn, s.number, err
}

// shutOut makes sure that no attempt of a client with that number of its writes happens any more.
func (s *Server) shutOut(client, writer int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writers[client] = max(s.writers[client], writer+1)
	return s.number
}

func (s *Server) insert(handle int64, e *lock.Entry) *lock.Entry {
	s.advance(keysOf(e)...)
	k := &kept{entry: *e, end: time.Now().Add(e.TTL)}
	k.entry.Number, k.entry.Handle = s.number, handle
	k.entry.Lingers, k.entry.Admitted = false, 0
	mine := k.entry
	k.lease = time.AfterFunc(e.TTL, func() { s.expire(&mine) })
	s.entries[keyOf(e)] = k
	s.publish(store.Change{Number: s.number, Joined: copied(k.entry)})
	return copied(k.entry)
}

// removedBy reports whether one of the attempts has removed its entry.
func (s *Server) removedBy(tries []Attempt) (did bool, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	did = slices.ContainsFunc(tries, func(a Attempt) bool { return s.removals[a] })
	return did, s.number
}

// remove removes the entry.
func (s *Server) remove(
	a Attempt,
	e *lock.Entry,
	why lock.Reason,
	while []*lock.Entry,
) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(e)
	if k == nil {
		return s.number, engine.ErrGone
	}
	if slices.ContainsFunc(while, func(e *lock.Entry) bool { return !s.stands(e) }) {
		return s.number, lock.Errorf(
			lock.Changed, "what the removal was decided by is not there any more",
		)
	}
	s.removals[a] = true
	s.drop(k, why, nil)
	return s.number, nil
}

// stands reports whether the entry is there, and still chooses if e does.
func (s *Server) stands(e *lock.Entry) bool {
	k := s.find(e)
	return k != nil && (k.entry.Choosing() || !e.Choosing())
}

// narrow takes a choosing entry out of all queues but those of kept, for a client that knows a
// number, unless that has happened. It returns the entry as it is then.
func (s *Server) narrow(
	e *lock.Entry, kept []lock.Claim, known uint64,
) (now *lock.Entry, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(known, engine.Txn{}); err != nil {
		return nil, s.number, err
	}
	if err := refusedForm(s.form); err != nil {
		return nil, s.number, err
	}
	k := s.find(e)
	if k == nil {
		return nil, s.number, engine.ErrGone
	}
	if k.entry.Choosing() {
		s.advance(entryKey(&k.entry))
		k.entry = *k.entry.Narrowed(kept)
		s.publish(store.Change{Number: s.number, Narrowed: copied(k.entry)})
	}
	return copied(k.entry), s.number, nil
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
