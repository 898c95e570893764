package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/test/bubble"
)

// stream is a follower's events, as text.
type stream struct {
	*service.EventStream
	t *testing.T
}

func (r *replica) follow(req service.EventsRequest) *stream {
	r.t.Helper()
	req.Of = "acme"
	s, err := r.Events(r.t.Context(), req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	return &stream{s, r.t}
}

// told returns all events since the last call.
func (s *stream) told() []string {
	after(time.Second)
	all := []string{}
	for {
		given, missed, more := s.Next(make([]*events.Record, 10))
		if more != nil {
			return all
		}
		for _, e := range given {
			all = append(all, strings.TrimSpace(fmt.Sprintf(
				"%v %s %s %s %v %s", e.ID, e.Kind, e.Entry.Tenant, e.Entry.Name(), e.Held, e.Reason,
			)))
		}
		if missed != nil {
			all = append(all, fmt.Sprintf("missed %v to %v", missed.After, missed.Before))
		}
	}
}

func (s *stream) wants(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), s.told()); diff != "" {
		s.t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestFollow: both replicas report every event, whichever replica caused it, and a follower can
// resume at the other one.
func TestFollow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		atA, atB, others := a.follow(service.EventsRequest{Tenant: "acme"}), b.follow(
			service.EventsRequest{},
		), b.follow(service.EventsRequest{Tenant: "other"})
		first := a.hold(lasting(want("orders:1", 0)))
		second := b.line(want("orders:1", time.Minute))
		third := a.line(want("orders:1", time.Second))
		b.start(want("orders:1", 0)).fails(lock.Held)
		after(2 * time.Second)
		third.fails(lock.TimedOut)
		a.release(first)
		second.holdsLater()
		told := []string{
			"101-1 lock.acquired acme orders:1 true", "102-1 lock.enqueued acme orders:1 false",
			"103-1 lock.enqueued acme orders:1 false",
			"104-1 lock.wait_timeout acme orders:1 false wait_timeout",
			"105-1 lock.released acme orders:1 true released", "105-2 lock.acquired acme orders:1 true",
		}
		atA.wants(told...)
		atB.wants(told...)
		others.wants()
		id := lock.EventID{Number: 105, Index: 1}
		b.follow(service.EventsRequest{Tenant: "acme", After: &id}).wants(told[5])
		after(ttl)
		atA.wants("106-1 lock.expired acme orders:1 true expired")
	})
}

// TestFollowOverAGap: a follower learns that it missed what happened while the feed was away.
func TestFollowOverAGap(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		st := b.follow(service.EventsRequest{Tenant: "acme"})
		a.hold(lasting(want("before", 0)))
		st.wants("101-1 lock.acquired acme before true")
		b.store.setFeed(lost)
		a.hold(lasting(want("meanwhile", 0)))
		st.wants()
		if _, err := b.Events(t.Context(), service.EventsRequest{Of: "acme"}); !errors.Is(
			err, lock.StoreUnavailable,
		) {
			t.Errorf("to follow without a feed gives %v", err)
		}
		b.store.setFeed(running)
		after(time.Second)
		a.hold(lasting(want("after", 0)))
		st.wants("missed 102-0 to 103-0", "103-1 lock.acquired acme after true")
	})
}

// TestFollowFromAnotherHistory: a follower with an id that the store does not know learns that
// events are missing.
func TestFollowFromAnotherHistory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		a.hold(lasting(want("a", 0)))
		strange := lock.EventID{Number: 103, Index: 1} // the next write is 102
		a.follow(service.EventsRequest{Tenant: "acme", After: &strange}).wants(
			"missed 103-1 to 101-0", "101-1 lock.acquired acme a true",
		)
		b.store.setFeed(frozen)
		a.hold(lasting(want("b", 0)))
		ahead := lock.Before(103)
		st := b.follow(service.EventsRequest{Tenant: "acme", After: &ahead})
		b.store.setFeed(running)
		st.wants()
		a.hold(lasting(want("c", 0)))
		st.wants("103-1 lock.acquired acme c true")
		strange.Number = 5000
		a.store.on(broken, newest)
		if _, err := a.Events(
			t.Context(), service.EventsRequest{Of: "acme", After: &strange},
		); !errors.Is(err, lock.StoreUnavailable) {
			t.Errorf("a store that cannot be asked about an id gives %v", err)
		}
	})
}

func TestFollowUntilTheDrain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newSharedStore(t).replica(t)
		st := r.follow(service.EventsRequest{Tenant: "acme"})
		r.Drain()
		select {
		case <-st.Draining:
		default:
			t.Error("a follower is not told that the replica drains")
		}
		if _, err := r.Events(t.Context(), service.EventsRequest{Of: "acme"}); !errors.Is(
			err, lock.Draining,
		) {
			t.Errorf("to follow a replica that drains gives %v", err)
		}
	})
}
