package service

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/events"
)

// publisher passes the view's events to the log, to the figures and to the followers.
type publisher struct {
	*dispatcher
	history *events.Log
}

// Begin implements [view.Events].
func (p publisher) Begin(number uint64) { p.history.Begin(number) }

// Add implements [view.Events].
func (p publisher) Add(what lock.Event) {
	p.dispatcher.Add(what)
	p.history.Add(what)
}

// Reached implements [view.Events].
func (p publisher) Reached(number uint64) { p.history.Reached(number) }

// EventsRequest asks to follow events.
type EventsRequest struct {
	Of     string        // the tenant that asks
	Tenant string        // the tenant whose events to send; "" is all
	After  *lock.EventID // resume after it; nil starts with new events
}

// EventStream follows events. It is for one goroutine, and must be closed.
type EventStream struct {
	*events.Subscription
	Draining <-chan struct{} // closed when the client should continue at another replica
}

// Events starts to follow events. Errors: draining; quota_exceeded and overloaded if there are
// too many followers; store_unavailable if the view is not current, or the store cannot tell
// whether an id belongs to its history.
func (s *Service) Events(ctx context.Context, req EventsRequest) (*EventStream, error) {
	if s.Draining() {
		return nil, errDraining()
	}
	if s.view.Progress.LostFor() > 0 {
		return nil, &lock.Error{
			Code:       lock.StoreUnavailable,
			Detail:     "this replica does not see what happens in the store; retry, here or at another",
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

// strange reports whether an id names an event that the store has not reached yet. A client with
// such an id may know a past that the store has lost. The very next event is not strange: an
// empty stream reports its id.
func (s *Service) strange(ctx context.Context, id *lock.EventID) (bool, error) {
	if id == nil || id.Number <= s.events.history.Filed()+1 {
		return false, nil
	}
	newest, err := s.Store.Newest(ctx)
	return id.Number > newest+1, err
}

// Gone reports whether an entry is known to have ended: it was written, and it no longer exists.
// For an entry that this replica has not seen, Gone returns false.
func (x *Locks) Gone(id lock.ID, number uint64) bool { return x.view.Gone(id, number) }

// HeldCallbacks returns the entries that hold now and have a callback. It reads all entries.
func (x *Locks) HeldCallbacks() []*lock.Entry { return x.view.Queues.HeldCallbacks() }

// HeldCallback returns the tenant's entry with the id if it holds now and has a callback, or nil.
func (x *Locks) HeldCallback(tenant string, id lock.ID) *lock.Entry {
	return x.view.Queues.HeldCallback(tenant, id)
}
