package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// told hands on what the view tells: to the log and the figures, and to those who follow.
type told struct {
	*dispatcher
	history *events.Log
}

// Begin implements [view.Events].
func (t told) Begin(number uint64) { t.history.Begin(number) }

// Add implements [view.Events].
func (t told) Add(what lock.Event) {
	t.dispatcher.Add(what)
	t.history.Add(what)
}

// Reached implements [view.Events].
func (t told) Reached(number uint64) { t.history.Reached(number) }

// EventsRequest asks to follow what happens.
type EventsRequest struct {
	Of     string        // the tenant that asks
	Tenant string        // whose events; "" is all
	After  *lock.EventID // goes on after it; nil begins with what happens from now on
}

// EventStream follows what happens. It is for one goroutine, and must be closed.
type EventStream struct {
	*events.Subscription
	Draining <-chan struct{} // closed when it is to go on at another replica
}

// Events begins to follow what happens. Errors: draining; quota_exceeded and overloaded
// where too many follow; store_unavailable if the view is not current, or the store cannot
// tell whether an id is of its history.
func (s *Service) Events(ctx context.Context, req EventsRequest) (*EventStream, error) {
	if s.Draining() {
		return nil, errDraining()
	}
	if s.view.LostFor() > 0 {
		return nil, &lock.Error{
			Code:       lock.StoreUnavailable,
			Detail:     "this replica does not see what happens in the store at the moment",
			RetryAfter: time.Second,
		}
	}
	strange, err := s.strange(ctx, req.After)
	if err != nil {
		return nil, err
	}
	s.events.history.Await(ctx)
	sub, err := s.events.history.Subscribe(
		events.Request{Of: req.Of, Tenant: req.Tenant, After: req.After, Strange: strange},
	)
	if err != nil {
		return nil, err
	}
	return &EventStream{Subscription: sub, Draining: s.draining}, nil
}

// strange reports whether an id is of something that the store has not come to yet. Who has
// it may know a past that the store has lost. What comes next is nothing strange: a stream
// without events is told so.
func (s *Service) strange(ctx context.Context, id *lock.EventID) (bool, error) {
	if id == nil || id.Number <= s.events.history.Told()+1 {
		return false, nil
	}
	newest, err := s.Store.Newest(ctx)
	return id.Number > newest+1, err
}

// Gone reports whether an entry is known to have ended: it is written, and not there any more. What
// this replica does not see is not known.
func (x *looks) Gone(id lock.ID, number uint64) bool { return x.view.Gone(id, number) }

// HeldCallbacks returns the entries that hold now and name a callback. It looks at all entries.
func (x *looks) HeldCallbacks() []*lock.Entry { return x.view.HeldCallbacks() }

// HeldCallback returns the tenant's entry with the id if it holds now and names a callback, and nil
// otherwise.
func (x *looks) HeldCallback(tenant string, id lock.ID) *lock.Entry {
	return x.view.HeldCallback(tenant, id)
}
