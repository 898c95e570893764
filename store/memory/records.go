package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// recordTable is the server's small records.
type recordTable struct {
	kept    map[store.RecordKey]smallRecord
	deleted map[store.RecordKey]uint64 // when a record of the key was last deleted
	lives   map[int64]*time.Timer      // of clients with bound records
	grown   map[string]chan struct{}   // by kind; closed and replaced with every change
}

type smallRecord struct {
	store.RecordForm
	version uint64
	life    int64 // of the client that it is bound to; or 0
}

func newRecordTable() recordTable {
	return recordTable{
		kept: map[store.RecordKey]smallRecord{}, deleted: map[store.RecordKey]uint64{},
		lives: map[int64]*time.Timer{}, grown: map[string]chan struct{}{},
	}
}

// copied returns a copy of the table with numbers raised by by.
func (t *recordTable) copied(by uint64) recordTable {
	c := newRecordTable()
	for k, r := range t.kept {
		r.version += by
		c.kept[k] = r
	}
	for k, number := range t.deleted {
		c.deleted[k] = number + by
	}
	return c
}

// replaceRecords replaces the table. Watchers and lives stay.
func (s *Server) replaceRecords(t recordTable) {
	old := s.small
	s.small.kept, s.small.deleted = t.kept, t.deleted
	for kind := range old.grown {
		s.tellKind(kind)
	}
}

// lookAtRecord reads the state of a key.
func (s *Server) lookAtRecord(k store.RecordKey) (store.RecordState, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.small.kept[k]
	return store.RecordState{
		Found: found, Version: r.version, RecordForm: r.RecordForm, Guard: int64(s.small.deleted[k]),
	}, s.number
}

// swapRecord writes w if the state of its key is unchanged. If w is bound, the client must have
// that life. The client knows a number.
func (s *Server) swapRecord(
	known uint64,
	was store.RecordState,
	w *store.RecordWrite,
	life int64,
) (version, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known > s.number {
		s.distrusted = max(s.distrusted, known)
	}
	t := &s.small
	raced := s.checkSwap(was, w)
	switch {
	case raced != nil:
		return 0, s.number, raced
	case w.Bound && t.lives[life] == nil:
		return 0, s.number, store.ErrLifeOver
	case w.Delete:
		s.dropRecord(w.RecordKey)
		return 0, s.number, nil
	}
	if !w.Bound {
		life = 0
	}
	s.advance()
	t.kept[w.RecordKey] = smallRecord{w.RecordForm, s.number, life}
	s.publish()
	s.tellKind(w.Kind)
	return s.number, s.number, nil
}

// checkSwap returns why nothing is written: the key's state has changed, or the past is missing.
func (s *Server) checkSwap(was store.RecordState, w *store.RecordWrite) error {
	r, found := s.small.kept[w.RecordKey]
	switch {
	case s.distrusted != 0 || s.foreign:
		return refusal()
	case found != was.Found || r.version != was.Version ||
		int64(s.small.deleted[w.RecordKey]) != was.Guard:
		return store.ErrRecordRaced
	}
	return nil
}

// removeAndSwap removes the entry and puts a record, at one number, if both are possible.
func (s *Server) removeAndSwap(
	e *lock.Entry,
	why lock.Reason,
	note *lock.Note,
	known uint64,
	was store.RecordState,
	w *store.RecordWrite,
) (version, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known > s.number {
		s.distrusted = max(s.distrusted, known)
	}
	if err := s.checkSwap(was, w); err != nil {
		return 0, s.number, err
	}
	k := s.find(e)
	if k == nil {
		return 0, s.number, store.Lost("the entry is not there")
	}
	s.drop(k, why, note)
	s.small.kept[w.RecordKey] = smallRecord{RecordForm: w.RecordForm, version: s.number}
	s.tellKind(w.Kind)
	return s.number, s.number, nil
}

func (s *Server) dropRecord(k store.RecordKey) {
	s.advance()
	delete(s.small.kept, k)
	s.small.deleted[k] = s.number
	s.publish()
	s.tellKind(k.Kind)
}

func (s *Server) tellKind(kind string) {
	if c := s.small.grown[kind]; c != nil {
		close(c)
		delete(s.small.grown, kind)
	}
}

// kindGrows returns a channel that is closed with the next change of a kind.
func (s *Server) kindGrows(kind string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.small.grown[kind]
	if c == nil {
		c = make(chan struct{})
		s.small.grown[kind] = c
	}
	return c
}

func place(k store.RecordKey) string { return k.Tenant + "/" + k.ID }

// pageOfRecords reads a page.
func (s *Server) pageOfRecords(q *store.RecordQuery) (page store.RecordPage, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.SortedFunc(
		maps.Keys(s.small.kept),
		func(a, b store.RecordKey) int { return cmp.Compare(place(a), place(b)) },
	)
	last := q.After
	for _, k := range keys {
		if !q.Wants(k) || place(k) <= q.After {
			continue
		}
		r := s.small.kept[k]
		if !page.Add(q, store.Record{RecordKey: k, Value: slices.Clone(r.Value), Version: r.version}) {
			page.Next = last
			break
		}
		last = place(k)
	}
	return page, s.number
}

// renewLife extends the life of a client's bound records; begin means that it has none yet.
func (s *Server) renewLife(life int64, begin bool) (number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.small.lives[life]
	switch {
	case t != nil:
		t.Reset(store.RecordLife)
	case begin && !s.stopped:
		s.small.lives[life] = time.AfterFunc(store.RecordLife, func() { s.endLife(life) })
	default:
		return s.number, store.ErrLifeOver
	}
	return s.number, nil
}

// endLife removes what is bound to a life.
func (s *Server) endLife(life int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.small.lives[life]
	if t == nil || s.stopped {
		return s.number
	}
	t.Stop()
	delete(s.small.lives, life)
	for k, r := range s.small.kept {
		if r.life == life {
			s.dropRecord(k)
		}
	}
	return s.number
}
