package service

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

const (
	// maxBlockingLocks is at how many locks it is looked who blocks whom: those with most
	// waiting. maxBlockingPlaces is how many places in their queues are read.
	maxBlockingLocks  = 1000
	maxBlockingPlaces = 20_000

	// maxTreeWaits and maxTreeDepth are how much of one tree is listed.
	maxTreeWaits = 200
	maxTreeDepth = 16

	// MaxHolderEntries is how many entries of one holder are listed.
	MaxHolderEntries = 200
)

// Blocking is who blocks whom.
type Blocking struct {
	*blocking.Forest
	Cut      bool // there is more than was looked at
	Revision uint64
	Now      time.Time
}

// Blocking tells who blocks whom at the locks that the operator may see, in so many trees at most.
// It returns the errors of [Console.Overview].
func (c *Console) Blocking(s lists.Sight, trees int) (*Blocking, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	page := c.lists.Page(
		lists.Query{
			Sight: s, State: "contended", Sort: lists.ByWaiters, Down: true, Limit: maxBlockingLocks,
		},
	)
	refs := make([]lock.Ref, 0, len(page.Rows))
	for _, l := range page.Rows {
		refs = append(refs, l.Ref)
	}
	queues, more := c.Service.view.Blocking(refs, maxBlockingPlaces)
	now := c.Service.Now()
	forest := blocking.Of(
		queues, now, blocking.Limits{Trees: trees, Waits: maxTreeWaits, Depth: maxTreeDepth},
	)
	return &Blocking{
		Forest: forest, Cut: more || page.Next != nil, Revision: page.Revision, Now: now,
	}, nil
}

// Holdings are what a holder holds and waits for.
type Holdings struct {
	view.OfHolder
	Now time.Time
}

// Holdings tells what a holder of a tenant holds and waits for, of the locks that somebody may
// see: up to most entries, or 200. It returns the errors of [Console.Overview].
func (c *Console) Holdings(s lists.Sight, holder string, most int) (*Holdings, error) {
	if err := c.Service.view.Missing(); err != nil {
		return nil, err
	}
	who := lock.Ref{Tenant: s.Tenant, Name: holder}
	return &Holdings{
		c.Service.view.OfHolder(who, s.May, min(most, MaxHolderEntries)), c.Service.Now(),
	}, nil
}
