package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/test/bubble"
)

// toldOf returns the ids of what the replica told of one kind.
func (r *replica) toldOf(kind lock.EventKind) (ids []string) {
	r.t.Helper()
	synctest.Wait()
	after(time.Second) // events are filed now and then
	begin := lock.EventID{}
	stream, err := r.Events(r.t.Context(), service.EventsRequest{Of: "acme", Tenant: "acme", After: &begin})
	if err != nil {
		r.t.Fatal(err)
	}
	defer stream.Close()
	room := make([]*events.Record, 64)
	for {
		given, _, more := stream.Next(room)
		for _, e := range given {
			if e.Kind == kind {
				ids = append(ids, e.ID.String())
			}
		}
		if more != nil {
			return ids
		}
	}
}

func (r *replica) report(name string, presented, known uint64, resource string) error {
	r.t.Helper()
	w := lock.StaleWrite{Presented: presented, Known: known, Resource: resource}
	return r.ReportStaleWrite(r.t.Context(), lock.Ref{Tenant: "acme", Name: name}, w)
}

// TestStaleWrites: a report is told once at every replica, with one id, however often it is
// repeated within a minute.
func TestStaleWrites(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		first := a.hold(want("orders:1", 0))
		a.release(first)
		second := a.hold(want("orders:1", 0))
		old, now := first.Entry.Number, second.Entry.Number
		for range 3 {
			for _, r := range []*replica{a, b} {
				if err := r.report("orders:1", old, now, "db"); err != nil {
					t.Fatal(err)
				}
				after(time.Second)
			}
		}
		if err := a.report("orders:1", old, now, "disk"); err != nil {
			t.Fatal(err)
		}
		ids := a.toldOf(lock.EventStaleWrite)
		if len(ids) != 2 {
			t.Fatalf("told %v, want one for each resource", ids)
		}
		if other := b.toldOf(lock.EventStaleWrite); strings.Join(ids, " ") != strings.Join(other, " ") {
			t.Errorf("one replica tells %v, the other %v", ids, other)
		}
		after(time.Minute)
		if err := a.report("orders:1", old, now, "db"); err != nil {
			t.Fatal(err)
		}
		if ids := b.toldOf(lock.EventStaleWrite); len(ids) != 3 {
			t.Errorf("told %v, want the repetition after a minute too", ids)
		}
	})
}

func TestBadStaleWrites(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		now := r.hold(want("orders:1", 0)).Entry.Number
		for _, c := range []struct {
			presented, known uint64
			resource         string
			field            string
		}{
			{0, now, "db", "fence_presented"},
			{now, now, "db", "fence_presented"},
			{now, 0, "db", "fence_known"},
			{now, now + 1, "db", "fence_known"},
			{now, 1 << 53, "db", "fence_known"},
			{1 << 53, now, "db", "fence_presented"},
		} {
			if e := coded(t, r.report("orders:1", c.presented, c.known, c.resource), lock.InvalidRequest); e.Field != c.field {
				t.Errorf("%+v is refused for %s: %s", c, e.Field, e.Detail)
			}
		}
		next := r.hold(want("orders:2", 0)).Entry.Number
		for _, resource := range []string{"", strings.Repeat("x", 201), "two\nlines"} {
			if e := coded(t, r.report("orders:1", now, next, resource), lock.InvalidRequest); e.Field != "resource" {
				t.Errorf("%q is refused for %s", resource, e.Field)
			}
		}
		for _, longest := range []string{strings.Repeat("\U0001F600", 200), strings.Repeat(`"`, 200), strings.Repeat("<", 200)} {
			if err := r.report("orders:1", now, next, longest); err != nil {
				t.Errorf("a resource of %d bytes is refused: %v", len(longest), err)
			}
		}
	})
}

// TestTooManyStaleWrites: what one tenant reports is bounded in a minute, another one's is not
// affected, and what could not be written can be reported again.
func TestTooManyStaleWrites(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(want("a", 0))
		known := r.hold(want("b", 0)).Entry.Number
		down := errors.New("the store is down")
		r.store.on(func(context.Context, func() error) error { return down }, notify)
		for range 100 {
			if err := r.report("a", 1, known, "db"); !errors.Is(err, down) {
				t.Fatalf("without a store: %v", err)
			}
		}
		r.store.on(nil, notify)
		for i := range 60 {
			if err := r.report("a", 1, known, fmt.Sprint("db-", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.report("a", 1, known, "db-7"); err != nil {
			t.Errorf("a repetition: %v", err)
		}
		if e := coded(t, r.report("a", 1, known, "db"), lock.RateLimited); e.RetryAfter <= 0 || e.RetryAfter > time.Minute {
			t.Errorf("it says to come back after %v", e.RetryAfter)
		}
		w := lock.StaleWrite{Presented: 1, Known: known, Resource: "db"}
		if err := r.ReportStaleWrite(t.Context(), lock.Ref{Tenant: "other", Name: "a"}, w); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		after(time.Minute)
		if err := r.report("a", 1, known, "db"); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// TestStaleWritesAtOnce: requests that come at one time may be counted in another order than
// they looked at the clock. That makes no room for more.
func TestStaleWritesAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		late := time.Duration(0)
		r := s.replica(t, func(c *service.Config) { c.Now = func() time.Time { return time.Now().Add(-late) } })
		known := r.hold(want("a", 0)).Entry.Number
		known = max(known, r.hold(want("b", 0)).Entry.Number)
		taken := 0
		for i := range 120 {
			if late = 0; i%10 == 9 {
				late = 20 * time.Millisecond
			}
			if r.report("a", 1, known, fmt.Sprint("db-", i)) == nil {
				taken++
			}
		}
		if taken != 60 {
			t.Errorf("%d reports are taken up in a minute, want 60", taken)
		}
		late = 20 * time.Millisecond
		if err := r.report("a", 1, known, "db-0"); err != nil {
			t.Errorf("a repetition: %v", err)
		}
	})
}

// TestStaleWriteBesideOneThatFails: who repeats a report that is on its way is not told that
// it was taken up if that fails.
func TestStaleWriteBesideOneThatFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		r.hold(want("a", 0))
		known := r.hold(want("b", 0)).Entry.Number
		gate, calls := make(chan struct{}), 0
		r.store.on(func(_ context.Context, call func() error) error {
			if calls++; calls > 1 {
				return call()
			}
			<-gate
			return errors.New("the store is down")
		}, notify)
		first := make(chan error, 1)
		go func() { first <- r.report("a", 1, known, "db") }()
		synctest.Wait()
		second := r.report("a", 1, known, "db")
		close(gate)
		if err := <-first; err == nil || second != nil {
			t.Errorf("the first was answered %v, the second %v", err, second)
		}
		for range 2 {
			if ids := r.toldOf(lock.EventStaleWrite); len(ids) != 1 {
				t.Errorf("told %v, want it once", ids)
			}
			if err := r.report("a", 1, known, "db"); err != nil {
				t.Error(err)
			}
		}
	})
}
