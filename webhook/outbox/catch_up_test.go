package outbox

import (
	"context"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// anotherPast tells what happens in a store that has lost its past.
type anotherPast struct {
	Locks
	log *events.Log
}

func (p anotherPast) Events(_ context.Context, req service.EventsRequest) (*service.EventStream, error) {
	s, err := p.log.Subscribe(events.Request{Of: req.Of, Tenant: req.Tenant, After: req.After, Strange: true})
	return &service.EventStream{Subscription: s}, err
}

// TestCatchesUpWithAnotherPast: who learns of a change in the moment in which numbers went back tells nobody
// of a gap that ends before it begins.
func TestCatchesUpWithAnotherPast(t *testing.T) {
	log := events.NewLog(events.Config{})
	t.Cleanup(log.Close)
	log.Begin(145)
	log.Await(t.Context())
	m := newMissing(t)
	m.Locks = anotherPast{log: log}
	lost := false
	m.lose = func() { lost = true }
	m.window.last = at(239)
	m.target.sub, m.target.Taken = &subscription.Subscription{ID: "x", Tenant: "acme", Version: 200}, 100
	m.catchUp(m.target, &wish{})
	if m.target.lost != nil || !lost {
		t.Errorf("it goes on: missed is %+v, before %v", m.target.lost, lock.Before(146))
	}
}
