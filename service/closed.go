package service

import (
	"context"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
)

// Closures are the closures that this replica knows.
type Closures interface {
	// Closed returns the closure that keeps an entry with these claims from joining, or nil.
	Closed(tenant string, claims []lock.Claim) *lock.Closure

	// Read reports whether the closures were read.
	Read() bool
}

// refuseOrRejoinWhenSettled is [Service.refuseOrRejoin] for a refusal that says nothing of the
// queue: the entry of an earlier request with the key may be there, and not be seen yet.
func (s *Service) refuseOrRejoinWhenSettled(ctx context.Context, e *lock.Entry, refused error) (*Grant, error) {
	if e.Resumable() {
		if err := s.settle(ctx, true); err != nil {
			return nil, err
		}
	}
	return s.refuseOrRejoin(ctx, e, refused)
}

// markClosed marks which of the locks on a page are closed.
func (c *Console) markClosed(lines []lists.Line) {
	for i := range lines {
		l := &lines[i]
		l.Closure = c.Service.closed(l.Tenant, []lock.Claim{{Name: l.Name}})
	}
}
