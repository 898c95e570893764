package service

import (
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/service/view"
)

// given are the async entries that this replica has written, for its keeper. While the feed is
// interrupted, the keeper does not learn of them otherwise. No other replica may see them either.
type given struct {
	mu      sync.Mutex
	entries []*lock.Entry // since the keeper last took them
	ready   chan struct{} // holds a value after entries became non-empty
}

func newGiven() given { return given{ready: make(chan struct{}, 1)} }

func (g *given) add(e *lock.Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entries = append(g.entries, e)
	select {
	case g.ready <- struct{}{}:
	default:
	}
}

func (g *given) take() []*lock.Entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.entries
	g.entries = nil
	return taken
}

// takeGiven starts to keep the entries written here, unless the view shows them or has shown
// their end.
func (a *asyncKeeper) takeGiven() {
	for _, entry := range a.given.take() {
		e := a.kept[entry.ID]
		known := e != nil && e.entry.Number >= entry.Number
		if known || a.s.view.Status(entry.ID, entry.Number).State != view.Unseen {
			continue
		}
		if e != nil { // an earlier entry with the same id, whose end the view has not shown
			a.drop(e)
		}
		e = a.add(entry, false)
		a.unseen[entry.ID] = struct{}{}
		if e.mine {
			a.dueAt(e, e.next())
		}
	}
}

// forgetUnseen drops entries that had ended before the view listed again.
func (a *asyncKeeper) forgetUnseen() {
	for id := range a.unseen {
		if e := a.kept[id]; e != nil && a.s.view.Status(id, e.entry.Number).State == view.Gone {
			a.drop(e)
		}
	}
}

// keepable returns an error if this replica cannot promise to keep an async entry, because its
// feed has been interrupted for too long. At that point the replica also leaves the list of
// replicas that keep entries.
func (s *Service) keepable(e *lock.Entry) error {
	if !e.Async || s.view.Progress.LateFor() <= replicas.CurrentTimeout {
		return nil
	}
	return &lock.Error{
		Code: lock.StoreUnavailable,
		Detail: "this replica does not see what happens in the store, and could not keep the " +
			"entry; retry at another",
		RetryAfter: time.Second, OutcomeUnknown: e.Resumable(), // an earlier request may have written it
	}
}
