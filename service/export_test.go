package service

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

// NumberedID returns an id that looks random.
func NumberedID(n uint64) lock.ID {
	raw := make([]byte, lock.IDSize)
	binary.BigEndian.PutUint64(raw, (n+1)*0x9e3779b97f4a7c15)
	return lock.IDOf(raw)
}

// MaxExpiries is how many answers of the store about leases are kept.
const MaxExpiries = maxExpiries

// Expiries returns how many are.
func (s *Service) Expiries() int {
	s.Locks.expiries.mu.Lock()
	defer s.Locks.expiries.mu.Unlock()
	return len(s.Locks.expiries.newer) + len(s.Locks.expiries.last)
}

// ListPart lists as long as the view is held for it, and returns whether there is more.
func (s *Service) ListPart(req view.ListRequest) (more bool) {
	_, more = s.view.Lists.List(req, "", &view.Page{})
	return more
}

// Kept returns how many async entries the replica knows of that wait, or have waited. It is
// for a bubble of testing/synctest, when nothing runs.
func (s *Service) Kept() int { return len(s.async.kept) }

// RowExpiries gives tests the ends of the leases of rows.
type RowExpiries struct{ *expiries }

// NewRowExpiries returns one without answers.
func NewRowExpiries() RowExpiries { return RowExpiries{newExpiries()} }

// Mark adds to lines what is known, after it asked.
func (x RowExpiries) Mark(
	lines []lists.Line, remaining func(context.Context, *lock.Entry) (time.Duration, error),
) {
	x.ofRows(context.Background(), lines, remaining)
}

// SlackSamples gives tests which renewals are measured.
type SlackSamples struct{ slackSamples }

// Take reports whether one is measured now.
func (x *SlackSamples) Take(now time.Time) bool { return x.take(now) }

// Rest has none be measured for a while.
func (x *SlackSamples) Rest(now time.Time) { x.rest(now) }
