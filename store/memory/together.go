package memory

import (
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// joint is the transaction of [Server.Together].
type joint struct {
	begun   bool // it has written something
	changes []store.Change
	keys    map[lock.Ref]bool // keys that no two of its writes may share
}

// Together runs requests in one transaction, as stores with group commit do: their writes share
// one number. A second write of one entry, or of an entry into one queue, begins the next number.
func (s *Server) Together(requests ...func() error) []error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	s.joint = &joint{keys: map[lock.Ref]bool{}}
	s.mu.Unlock()
	errs := make([]error, len(requests))
	for i, do := range requests {
		errs[i] = do()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit()
	s.joint = nil
	return errs
}

// advance gives a write its number, for which it takes the keys.
func (s *Server) advance(keys ...lock.Ref) {
	if s.joint == nil {
		s.number++
		return
	}
	for _, k := range keys {
		if s.joint.keys[k] {
			s.commit()
			break
		}
	}
	for _, k := range keys {
		s.joint.keys[k] = true
	}
	if !s.joint.begun {
		s.number++
		s.joint.begun = true
	}
}

// before returns the number of the last write outside the present transaction.
func (s *Server) before() uint64 {
	if s.joint != nil && s.joint.begun {
		return s.number - 1
	}
	return s.number
}

// commit publishes what the transaction has written so far.
func (s *Server) commit() {
	if s.joint.begun {
		s.show(s.joint.changes)
	}
	s.joint = &joint{keys: map[lock.Ref]bool{}}
}

// keysOf returns the keys of a write that puts e: its queues, in which numbers only grow, and
// that of the entry.
func keysOf(e *lock.Entry) []lock.Ref {
	keys := []lock.Ref{entryKey(e)}
	for _, c := range e.Claims {
		keys = append(keys, lock.Ref{Tenant: e.Tenant, Name: c.Name})
	}
	return keys
}

// entryKey is the key of a write that removes or narrows e. No lock has such a name.
func entryKey(e *lock.Entry) lock.Ref {
	return lock.Ref{Tenant: e.Tenant, Name: "/" + string(e.ID)}
}

// group gathers the writes of one client that arrive together.
type group struct {
	mu      sync.Mutex
	pending []*grouped
}

type grouped struct {
	do   func() error
	err  error
	done chan struct{}
}

// carryOut runs a write together with others that arrive within the time.
func (g *group) carryOut(s *Server, within time.Duration, do func() error) error {
	w := &grouped{do: do, done: make(chan struct{})}
	g.mu.Lock()
	g.pending = append(g.pending, w)
	first := len(g.pending) == 1
	g.mu.Unlock()
	if first {
		time.AfterFunc(within, func() { g.flush(s) })
	}
	<-w.done
	return w.err
}

func (g *group) flush(s *Server) {
	g.mu.Lock()
	writes := g.pending
	g.pending = nil
	g.mu.Unlock()
	requests := make([]func() error, len(writes))
	for i, w := range writes {
		requests[i] = w.do
	}
	for i, err := range s.Together(requests...) {
		writes[i].err = err
		close(writes[i].done)
	}
}
