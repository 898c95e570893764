package service

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/view"
)

const (
	// maxBlockingLocks bounds the locks that one answer examines: those with the most waiters.
	// maxBlockingPlaces bounds the queue entries that it reads there.
	maxBlockingLocks  = 1000
	maxBlockingPlaces = 20_000

	// maxTreeWaits and maxTreeDepth bound what an answer lists of one tree.
	maxTreeWaits = 200
	maxTreeDepth = 16

	// MaxHolderEntries bounds the listed entries of one holder.
	MaxHolderEntries = 200
)

// Blocking reports which holders block which waiters.
type Blocking struct {
	*blocking.Forest
	Cut      bool // the answer left something out
	Revision uint64
	Now      time.Time
}

// Blocking returns which holders block which waiters at the locks that the operator may see, in
// at most that many trees. It returns the errors of [Console.Overview].
func (c *Console) Blocking(s lists.Sight, trees int) (*Blocking, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	page := c.lists.Page(lists.Query{
		Sight: s, State: "contended", Sort: lists.ByWaiters, Down: true, Limit: maxBlockingLocks,
	})
	refs := make([]lock.Ref, 0, len(page.Rows))
	for _, l := range page.Rows {
		refs = append(refs, l.Ref)
	}
	queues, more := c.Service.view.Lists.Blocking(refs, maxBlockingPlaces)
	now := c.Service.Now()
	forest := blocking.Of(
		queues, now, blocking.Limits{Trees: maxBlockingLocks, Waits: maxTreeWaits, Depth: maxTreeDepth},
	)
	c.hangingFirst(forest, now)
	forest.Trees = forest.Trees[:min(len(forest.Trees), trees)]
	return &Blocking{
		Forest: forest, Cut: more || page.Next != nil, Revision: page.Revision, Now: now,
	}, nil
}

// hangingFirst marks the holders that hang, and puts their trees first.
func (c *Console) hangingFirst(f *blocking.Forest, now time.Time) {
	hangs := map[*blocking.Tree]bool{}
	for _, t := range f.Trees {
		for i := range t.Heads {
			h := &t.Heads[i]
			r := lock.Ref{Tenant: t.Tenant, Name: h.Lock}
			h.Usual = c.Service.figures.Of(r).UsualHold()
			h.Hangs = h.Holds && c.Service.figures.Hangs(r, now.Sub(h.Since), now.Sub(h.Oldest))
			hangs[t] = hangs[t] || h.Hangs
		}
	}
	slices.SortStableFunc(f.Trees, func(a, b *blocking.Tree) int {
		switch {
		case hangs[a] == hangs[b]:
			return 0
		case hangs[a]:
			return -1
		}
		return 1
	})
}

// Holdings are the entries of one holder, held and waiting.
type Holdings struct {
	view.OfHolder
	Now time.Time
}

// Holdings returns what a holder of a tenant holds and waits for, of the locks in sight: up to
// most entries, or 200. It returns the errors of [Console.Overview].
func (c *Console) Holdings(s lists.Sight, holder string, most int) (*Holdings, error) {
	if err := c.Service.view.Progress.Missing(); err != nil {
		return nil, err
	}
	who := lock.Ref{Tenant: s.Tenant, Name: holder}
	return &Holdings{
		c.Service.view.Lists.OfHolder(who, s.May, min(most, MaxHolderEntries)), c.Service.Now(),
	}, nil
}
