package memory

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

type noticeKey struct{ tenant, id string }

// notice is one that was written. It goes with the entry that it belongs to, or after a
// while.
type notice struct {
	lock.Notice
	at     time.Time
	forget *time.Timer // nil if it belongs to an entry
}

func (n *notice) stop() {
	if n.forget != nil {
		n.forget.Stop()
	}
}

// notify writes a notice, unless there is one with its id, or the entry that it belongs to
// is gone. Who does not know of a lost past yet, but has seen a later number, tells the
// server of it so.
func (s *Server) notify(known uint64, understood int, n *lock.Notice, of *lock.Entry) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known > s.number {
		s.distrusted = max(s.distrusted, known)
	}
	if s.distrusted != 0 || s.foreign {
		return s.number, refusal()
	}
	if newer := s.newer(understood); newer != nil {
		return s.number, newerRefusal(newer)
	}
	if of != nil && s.find(of) == nil {
		return s.number, store.Lost("the entry is not there")
	}
	if s.notices[noticeKey{n.Tenant, n.ID}] != nil {
		return s.number, nil
	}
	s.advance()
	written := &notice{Notice: *n, at: time.Now()}
	written.Number = s.number
	s.keepNotice(written)
	told := written.Notice
	s.publish(store.Change{Number: s.number, Notice: &told})
	return s.number, nil
}

func (s *Server) keepNotice(n *notice) {
	k := noticeKey{n.Tenant, n.ID}
	s.notices[k] = n
	if n.Of != "" {
		return
	}
	n.forget = time.AfterFunc(time.Until(n.at.Add(s.cfg.Remember)), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.notices[k] == n {
			delete(s.notices, k)
		}
	})
}

// forgetNoticesOf forgets the notices of an entry that goes.
func (s *Server) forgetNoticesOf(e *lock.Entry) {
	maps.DeleteFunc(s.notices, func(_ noticeKey, n *notice) bool {
		return n.Tenant == e.Tenant && n.Of == e.ID
	})
}

// attached returns the notices of entries that are there, in the order of their numbers.
func (s *Server) attached() []*lock.Notice {
	var all []*lock.Notice
	for _, n := range s.notices {
		if n.Of != "" {
			copied := n.Notice
			all = append(all, &copied)
		}
	}
	slices.SortFunc(all, func(a, b *lock.Notice) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func (s *Server) copiedNotices() (all []notice) {
	for _, n := range s.notices {
		all = append(all, *n)
	}
	return all
}

// replaceNotices puts others in the place of those that are there, with numbers that are
// greater by some.
func (s *Server) replaceNotices(all []notice, by uint64) {
	for _, n := range s.notices {
		n.stop()
	}
	s.notices = map[noticeKey]*notice{}
	for _, n := range all {
		n.Number += by
		s.keepNotice(&n)
	}
}
