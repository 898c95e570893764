package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

// values are what the server keeps for the engine.
type values struct {
	kept    map[engine.Key]value
	deleted map[engine.Key]uint64    // when a value of the key was last deleted
	lives   map[string]*time.Timer   // of clients with bound values
	grown   map[string]chan struct{} // by directory; closed and replaced with every change
}

type value struct {
	data   []byte
	number uint64
	life   string // that it is bound to; or ""
}

func newValues() values {
	return values{
		kept: map[engine.Key]value{}, deleted: map[engine.Key]uint64{},
		lives: map[string]*time.Timer{}, grown: map[string]chan struct{}{},
	}
}

// copied returns a copy with numbers raised by by.
func (t *values) copied(by uint64) values {
	c := newValues()
	for k, v := range t.kept {
		v.number += by
		c.kept[k] = v
	}
	for k, number := range t.deleted {
		c.deleted[k] = number + by
	}
	return c
}

func (t *values) state(k engine.Key) engine.State {
	v, found := t.kept[k]
	return engine.State{
		Found: found, Data: slices.Clone(v.data), Position: int64(v.number), Stamp: int64(t.deleted[k]),
	}
}

// replaceValues replaces the values. Followers and lives stay.
func (s *Server) replaceValues(t values) {
	s.values.kept, s.values.deleted = t.kept, t.deleted
	for dir := range s.values.grown {
		s.wakeDir(dir)
	}
}

// look reads the state of a key.
func (s *Server) look(k engine.Key) (engine.State, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values.state(k), s.number
}

// write makes a transaction for a client that knows a number.
func (s *Server) write(known uint64, t engine.Txn) (number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(known, t); err != nil {
		return s.number, err
	}
	s.advance()
	s.putAll(t)
	s.publish()
	return s.number, nil
}

// removeAndCommit removes the entry too, if both are possible.
func (s *Server) removeAndCommit(
	e *lock.Entry, why lock.Reason, note *lock.Note, known uint64, t engine.Txn,
) (number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(known, t); err != nil {
		return s.number, err
	}
	k := s.find(e)
	if k == nil {
		return s.number, store.Lost("the entry is not there")
	}
	s.drop(k, why, note)
	s.putAll(t)
	return s.number, nil
}

// check returns why nothing is written: a condition does not hold, a life is over, or the past is
// missing.
func (s *Server) check(known uint64, t engine.Txn) error {
	if known > s.number {
		s.distrusted = max(s.distrusted, known)
	}
	if s.distrusted != 0 || s.foreign {
		return refusal()
	}
	for i, c := range t.If {
		now := s.values.state(c.Key)
		if now.Found != c.Was.Found || now.Position != c.Was.Position || now.Stamp != c.Was.Stamp {
			return &engine.Raced{If: i}
		}
	}
	for _, p := range t.Put {
		if p.Life != "" && s.values.lives[p.Life] == nil {
			return engine.ErrLifeOver
		}
	}
	return nil
}

// putAll makes the writes of a transaction at the number that is the newest.
func (s *Server) putAll(t engine.Txn) {
	for _, p := range t.Put {
		if p.Delete {
			delete(s.values.kept, p.Key)
			s.values.deleted[p.Key] = s.number
		} else {
			s.values.kept[p.Key] = value{p.Value, s.number, p.Life}
		}
		s.wakeDir(p.Key.Dir)
	}
}

func (s *Server) wakeDir(dir string) {
	if c := s.values.grown[dir]; c != nil {
		close(c)
		delete(s.values.grown, dir)
	}
}

// dirGrows returns a channel that is closed with the next change of a directory.
func (s *Server) dirGrows(dir string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.values.grown[dir]
	if c == nil {
		c = make(chan struct{})
		s.values.grown[dir] = c
	}
	return c
}

// listValues lists a directory in the order of its names.
func (s *Server) listValues(l engine.Listing) (next string, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.SortedFunc(
		maps.Keys(s.values.kept), func(a, b engine.Key) int { return cmp.Compare(a.Name, b.Name) },
	)
	last := l.Cursor
	for _, k := range keys {
		if k.Dir != l.Dir || k.Name <= l.Cursor || !l.Wants(k.Name) {
			continue
		}
		if !l.Take(k.Name, s.values.state(k)) {
			return last, s.number
		}
		last = k.Name
	}
	return "", s.number
}

// renewLife extends the life of a client's bound values; begin means that it has none yet.
func (s *Server) renewLife(id string, begin bool) (number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.values.lives[id]
	switch {
	case t != nil:
		t.Reset(store.RecordLife)
	case begin && !s.stopped:
		s.values.lives[id] = time.AfterFunc(store.RecordLife, func() { s.endLife(id) })
	default:
		return s.number, engine.ErrLifeOver
	}
	return s.number, nil
}

// endLife removes what is bound to a life.
func (s *Server) endLife(id string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.values.lives[id]
	if t == nil || s.stopped {
		return s.number
	}
	t.Stop()
	delete(s.values.lives, id)
	for k, v := range s.values.kept {
		if v.life == id {
			s.advance()
			s.putAll(engine.Txn{Put: []engine.Put{{Key: k, Delete: true}}})
			s.publish()
		}
	}
	return s.number
}
