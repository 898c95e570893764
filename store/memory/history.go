package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// publish adds a step to the history. The caller holds the mutex.
func (s *Server) publish(changes ...store.Change) {
	if s.joint != nil {
		s.joint.changes = append(s.joint.changes, changes...)
		return
	}
	s.show(changes)
}

func (s *Server) show(changes []store.Change) {
	r := Run{s.number, time.Now(), changes}
	s.runs = append(s.runs, r)
	s.cfg.Observe(r)
	close(s.grown)
	s.grown = make(chan struct{})
}

// cursor is a position in the history.
type cursor struct {
	life int
	next uint64
}

var errHistory = errors.New("the history from there on was forgotten")

// list returns all entries, the kept ends, and where the history continues.
func (s *Server) list() (store.Snapshot, []store.Ended, cursor) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	view := store.Snapshot{Number: s.number, Entries: s.sorted(func(*lock.Entry) bool { return true })}
	return view, s.ends(), cursor{s.life, s.first + uint64(len(s.runs))}
}

// next waits for the step after the cursor.
func (s *Server) next(ctx context.Context, at cursor) (Run, error) {
	for {
		r, ok, grown, err := s.step(at)
		if ok || err != nil {
			return r, err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return Run{}, context.Cause(ctx)
		}
	}
}

func (s *Server) step(at cursor) (r Run, ok bool, grown <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch i := at.next - s.first; {
	case at.life != s.life || at.next < s.first:
		return Run{}, false, nil, errHistory
	case i < uint64(len(s.runs)):
		return s.runs[i], true, nil, nil
	}
	return Run{}, false, s.grown, nil
}

// Compact drops the history: a feed that lags has to list again.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first += uint64(len(s.runs))
	s.runs = nil
}

// Checkpoint is a copy of a server at one number, as from a backup.
type Checkpoint struct {
	Number  uint64
	Entries []lock.Entry

	floor      uint64
	distrusted uint64
	foreign    bool
	records    map[key]record
	values     values
}

// Checkpoint returns a copy of the server.
func (s *Server) Checkpoint() Checkpoint {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Checkpoint{
		Number: s.number, floor: s.floor, distrusted: s.distrusted, foreign: s.foreign,
		records: map[key]record{},
	}
	for _, e := range s.sorted(func(*lock.Entry) bool { return true }) {
		c.Entries = append(c.Entries, *e)
	}
	for k, r := range s.records {
		c.records[k] = *r
	}
	c.values = s.values.copied(0)
	return c
}

// Restore restores a copy: the server continues from there, and numbers repeat. Leases restart.
func (s *Server) Restore(c Checkpoint) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restore(c)
}

// RestoreElsewhere does the same, into another cluster: the identity in the data differs from the
// cluster's own, so that it grants nothing.
func (s *Server) RestoreElsewhere(c Checkpoint) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.foreign = true
	s.restore(c)
}

func (s *Server) restore(c Checkpoint) {
	s.stopTimers()
	s.number, s.floor = c.Number, c.floor
	s.distrusted, s.foreign = c.distrusted, c.foreign
	s.entries, s.records = map[key]*kept{}, map[key]*record{}
	for _, e := range c.Entries {
		k := &kept{entry: e, end: time.Now().Add(e.TTL)}
		k.lease = time.AfterFunc(e.TTL, func() { s.expire(&e) })
		s.entries[keyOf(&e)] = k
	}
	for k, r := range c.records {
		s.records[k] = s.forgetting(k, r.number, r.ended)
	}
	s.replaceValues(c.values.copied(0))
	s.startOver()
}

// maxFloor leaves enough numbers below 2^53.
const maxFloor = 1 << 52

// SetForm records another form of the stored data, as another version of the server does.
func (s *Server) SetForm(form int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.form = form
	s.startOver()
}

func (s *Server) refusedForm() *lock.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return refusedForm(s.form)
}

func refusedForm(form int) *lock.Error {
	err := store.CheckForm(form)
	if err == nil {
		return nil
	}
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: err.Error(), RetryAfter: retryPause, Cause: err,
	}
}

// Raise sets an operator's fence floor. It is part of every number, including those of existing
// entries, so feeds list again. If the floor covers what is missing, the server is trusted again.
// A floor only rises.
func (s *Server) Raise(floor uint64) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if floor < s.floor || floor > maxFloor {
		return fmt.Errorf("a fence floor of %d after %d", floor, s.floor)
	}
	s.shift(floor - s.floor)
	s.floor = floor
	if s.number >= s.distrusted {
		s.distrusted, s.foreign = 0, false
	}
	return nil
}

// shift adds to all numbers.
func (s *Server) shift(by uint64) {
	if by == 0 {
		return
	}
	s.number += by
	for _, k := range s.entries {
		k.lease.Stop()
		k.entry.Number += by
		e := k.entry
		k.lease = time.AfterFunc(time.Until(k.end), func() { s.expire(&e) })
	}
	s.replaceValues(s.values.copied(by))
	s.startOver()
}

// startOver makes feeds list again, because numbers have a new meaning.
func (s *Server) startOver() {
	s.runs, s.first = nil, 0
	s.life++
	close(s.grown)
	s.grown = make(chan struct{})
}

// distrust records that number was issued, if the server's newest is smaller.
func (s *Server) distrust(number uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number > s.number {
		s.distrusted = max(s.distrusted, number)
	}
	return s.number
}

// Distrusted returns the issued number that is missing, or 0.
func (s *Server) Distrusted() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.distrusted
}

// Trusted reports whether entries can be written.
func (s *Server) Trusted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.distrusted == 0 && !s.foreign
}

func refusal() *lock.Error {
	err := store.Unavailable(
		errors.New("the store lost its past; an operator must set a fence floor"), "enqueue", false,
	)
	err.Code = lock.FenceFloorRequired
	return err
}
