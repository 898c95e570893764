package service_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/test/bubble"
)

const explanation = "its node was lost in the fire"

// revoking asks for the end of a grant's entry as an operator does who saw it.
func revoking(g *service.Grant) service.RevokeRequest {
	req := service.RevokeRequest{
		Tenant: g.Entry.Tenant, Name: g.Entry.Name(), Set: g.Entry.Set, ID: g.Entry.ID,
		Fence: g.Entry.Number, Reason: explanation,
		By: audit.Who{
			Subject: "ops", Tenant: "home", Scope: "admin", Address: "192.0.2.7", RequestID: "r1",
		},
	}
	if req.Set {
		req.Name = ""
	}
	return req
}

func (r *replica) revoke(req service.RevokeRequest) *service.Revoked {
	r.t.Helper()
	done, err := r.Revoke(r.t.Context(), req)
	if err != nil {
		r.t.Fatalf("revoke: %v", err)
	}
	synctest.Wait()
	return done
}

func (r *replica) revokeFails(req service.RevokeRequest, code lock.Code) lock.Error {
	r.t.Helper()
	_, err := r.Revoke(r.t.Context(), req)
	if err == nil {
		r.t.Fatalf("revoked, want %s", code)
	}
	return coded(r.t, err, code)
}

// onRecord returns what is on record, the newest first.
func (s *sharedStore) onRecord(t *testing.T) []*audit.Record {
	t.Helper()
	c := s.Connect(nil)
	defer c.Close()
	page, err := audit.NewLog(c.Records(), audit.DefaultRetention, nil).Page(
		t.Context(), audit.Query{Limit: 1000},
	)
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}

// notes returns the notes of the revocations since the stream began.
func (s *stream) notes() (notes []*lock.Note) {
	after(time.Second)
	for {
		given, _, more := s.Next(make([]*events.Record, 10))
		if more != nil {
			return notes
		}
		for _, e := range given {
			if e.Kind == lock.EventRevoked {
				notes = append(notes, e.Note)
			}
		}
	}
}

// TestRevoke ends a holder's entry at another replica than its own.
func TestRevoke(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		streams := []*stream{
			a.follow(service.EventsRequest{Tenant: "acme"}), b.follow(service.EventsRequest{}),
		}
		holder := a.hold(lasting(want("orders:1", 0)))
		next := a.line(lasting(want("orders:1", time.Minute)))
		done := b.revoke(revoking(holder))
		if !done.Held || done.Entry.ID != holder.Entry.ID {
			t.Errorf("%+v", done)
		}
		next.holds()
		for _, r := range []*replica{a, b} {
			_, err := r.Renew(t.Context(), by(holder))
			if e := coded(t, err, lock.Lost); e.Reason != lock.Revoked {
				t.Errorf("a renewal tells the reason %q", e.Reason)
			}
			if e := r.revokeFails(revoking(holder), lock.Lost); e.Reason != lock.Revoked {
				t.Errorf("once more tells the reason %q", e.Reason)
			}
		}
		for _, st := range streams {
			if diff := cmp.Diff([]*lock.Note{{By: "ops", Reason: explanation}}, st.notes()); diff != "" {
				t.Errorf("what events say of it (-want +got)\n%s", diff)
			}
		}
		want := []*audit.Record{{
			ID: done.Record.ID, At: done.Record.At, Tenant: "acme", By: revoking(holder).By,
			Action: audit.RevokeEntry,
			Object: audit.Object{
				Locks: []string{"orders:1"}, Entry: holder.Entry.ID, Holder: "worker-1",
				Fence: holder.Entry.Number, Held: true,
			},
			Reason: explanation, Result: audit.Revoked,
		}}
		if diff := cmp.Diff(want, s.onRecord(t)); diff != "" {
			t.Errorf("on record (-want +got)\n%s", diff)
		}
	})
}

// TestRevokeWaiting ends an entry that waits: its request is answered.
func TestRevokeWaiting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		holder := a.hold(lasting(want("orders:1", 0)))
		waits := a.line(keyed("orders:1", time.Minute, "k"))
		last := b.line(want("orders:1", time.Minute))
		number := s.Entries()[1].Number
		req := revoking(holder)
		req.ID, req.Fence = s.Entries()[1].ID, number
		if done := b.revoke(req); done.Held {
			t.Error("it is said to have held")
		}
		waits.ends(lock.Revoked)
		a.start(keyed("orders:1", time.Minute, "k")).ends(lock.Revoked) // its key is used up
		a.release(holder)
		last.holds()
	})
}

// TestRevokeSet ends a set in all its queues at once.
func TestRevokeSet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		both := want("a", 0)
		both.Set, both.Claims = true, append(both.Claims, lock.Claim{Name: "b", Mode: lock.Exclusive})
		g := r.hold(lasting(both))
		r.revoke(revoking(g))
		r.hold(want("a", 0))
		r.hold(want("b", 0))
		if all := s.onRecord(t); len(all) != 1 || all[0].Action != audit.RevokeSet ||
			len(all[0].Object.Locks) != 2 {
			t.Errorf("on record: %+v", all)
		}
	})
}

// TestRevokeExactly: a request names an entry that has changed or is out of the operator's scope.
// Nothing ends, and nothing is recorded.
func TestRevokeExactly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g, other := r.hold(lasting(want("a", 0))), r.hold(lasting(want("b", 0)))
		for what, c := range map[string]struct {
			change func(*service.RevokeRequest)
			code   lock.Code
		}{
			"another fence": {
				func(q *service.RevokeRequest) { q.Fence = other.Entry.Number }, lock.Changed,
			},
			"an earlier fence": {func(q *service.RevokeRequest) { q.Fence-- }, lock.Changed},
			"another lock":     {func(q *service.RevokeRequest) { q.Name = "b" }, lock.NotFound},
			"no set":           {func(q *service.RevokeRequest) { q.Name, q.Set = "", true }, lock.NotFound},
			"another holder": {
				func(q *service.RevokeRequest) { q.Name, q.Holder = "", "worker-2" }, lock.Changed,
			},
			"another tenant": {func(q *service.RevokeRequest) { q.Tenant = "other" }, lock.Lost},
			"an unknown id":  {func(q *service.RevokeRequest) { q.ID = "nobody" }, lock.Lost},
			"names of others": {
				func(q *service.RevokeRequest) { q.May = func(name string) bool { return name == "b" } },
				lock.Forbidden,
			},
			"a short reason": {
				func(q *service.RevokeRequest) { q.Reason = "too short" }, lock.InvalidRequest,
			},
			"a reason of blanks": {
				func(q *service.RevokeRequest) { q.Reason = strings.Repeat(" ", 12) }, lock.InvalidRequest,
			},
			"a reason in lines": {
				func(q *service.RevokeRequest) { q.Reason = "its node\nwas lost" }, lock.InvalidRequest,
			},
			"a giant reason": {
				func(q *service.RevokeRequest) { q.Reason = strings.Repeat("x", 501) }, lock.InvalidRequest,
			},
			"a reason not UTF-8": {
				func(q *service.RevokeRequest) { q.Reason = "its node was \xff" }, lock.InvalidRequest,
			},
			"a turning reason": {
				func(q *service.RevokeRequest) { q.Reason = "its node was \u202e" }, lock.InvalidRequest,
			},
			"half of it, rightly": {func(q *service.RevokeRequest) { q.ID = other.Entry.ID }, lock.NotFound},
		} {
			req := revoking(g)
			c.change(&req)
			if e := r.revokeFails(req, c.code); c.code == lock.Lost && e.Reason != lock.Unknown {
				t.Errorf("%s: the reason %q is told", what, e.Reason)
			}
		}
		if len(s.ids()) != 2 || len(s.onRecord(t)) != 0 {
			t.Errorf("%d entries are left, and on record is %+v", len(s.ids()), s.onRecord(t))
		}
		r.release(g)
		if e := r.revokeFails(revoking(g), lock.Lost); e.Reason != lock.Released {
			t.Errorf("what was released is told to be %q", e.Reason)
		}
		spying := revoking(g)
		spying.Tenant = "other"
		if e := r.revokeFails(spying, lock.Lost); e.Reason != lock.Unknown {
			t.Errorf("another tenant is told that it was %q", e.Reason)
		}
	})
}

// TestRevokeRepeated: the answer to a revocation is lost. A retry learns that the entry is gone,
// and the audit has it once.
func TestRevokeRepeated(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		g := a.hold(lasting(want("a", 0)))
		b.store.on(deaf, remove)
		if e := b.revokeFails(revoking(g), lock.StoreUnavailable); !e.OutcomeUnknown {
			t.Error("the error says that nothing happened")
		}
		b.store.on(nil, remove)
		for _, r := range []*replica{b, a} {
			if e := r.revokeFails(revoking(g), lock.Lost); e.Reason != lock.Revoked {
				t.Errorf("repeated, it tells the reason %q", e.Reason)
			}
		}
		if n := len(s.onRecord(t)); n != 1 {
			t.Errorf("on record %d times, want once", n)
		}
	})
}

// TestRevokeAgainstOthers has revocations at two replicas meet a release, renewals and the end
// of the lease, in any order: one of them ends the entry, and it is on record if it was one
// of the revocations.
func TestRevokeAgainstOthers(t *testing.T) {
	for seed := range 60 {
		bubble.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			s := newSharedStore(t)
			a, b := s.replica(t), s.replica(t)
			req := want("a", 0)
			req.TTL = 3 * time.Second
			g := a.hold(req)
			revoked := make([]error, 2)
			var released error
			var all sync.WaitGroup
			at := func(do func()) {
				later := time.Duration(2990+random.IntN(20)) * time.Millisecond
				all.Go(func() {
					<-time.After(later)
					do()
				})
			}
			for i, r := range []*replica{a, b} {
				at(func() { _, revoked[i] = r.Revoke(t.Context(), revoking(g)) })
			}
			at(func() { released = b.Release(t.Context(), by(g)) })
			at(func() { _, _ = a.Renew(t.Context(), by(g)) })
			all.Wait()
			synctest.Wait()
			after(10 * time.Second)
			ends := 0
			for _, err := range append(revoked, released) {
				if err == nil {
					ends++
				} else if !errors.Is(err, lock.Lost) {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			why, onRecord := s.reasonOf(g.Entry.ID), len(s.onRecord(t))
			byOperator := revoked[0] == nil || revoked[1] == nil
			if ends > 1 || s.has(g.Entry.ID) || byOperator != (why == lock.Revoked) ||
				byOperator != (onRecord == 1) || onRecord > 1 {
				t.Errorf(
					"seed %d: %d ended it, %q, %d on record: %v, %v", seed, ends, why, onRecord, revoked, released,
				)
			}
		})
	}
}

// TestRevokeAll names several entries of a holder, some of them wrongly.
func TestRevokeAll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		var all []service.RevokeRequest
		for i := range 5 {
			req := revoking(r.hold(lasting(want(fmt.Sprint("a", i), 0))))
			req.Name, req.Holder = "", "worker-1"
			all = append(all, req)
		}
		all[1].Fence++
		all[2].Holder = "worker-2"
		var got []lock.Code
		for _, out := range r.RevokeAll(t.Context(), all) {
			var e *lock.Error
			if errors.As(out.Err, &e) {
				got = append(got, e.Code)
			} else {
				got = append(got, "")
			}
		}
		if diff := cmp.Diff([]lock.Code{"", lock.Changed, lock.Changed, "", ""}, got); diff != "" ||
			len(s.ids()) != 2 || len(s.onRecord(t)) != 3 {
			t.Errorf(
				"%d are left, %d on record; outcomes (-want +got)\n%s", len(s.ids()), len(s.onRecord(t)), diff,
			)
		}
		r.store.on(broken, remove)
		all[1].Fence--
		all[2].Holder = "worker-1"
		if out := r.RevokeAll(t.Context(), all[1:3]); len(out) != 1 ||
			!errors.Is(out[0].Err, lock.StoreUnavailable) {
			t.Errorf("without a store: %+v", out)
		}
	})
}

// TestRevokeFlood: what an operator can do in a short time is bounded, for each tenant.
func TestRevokeFlood(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		for i := range 1000 {
			r.revoke(revoking(r.hold(want(fmt.Sprint("a", i), 0))))
		}
		g := r.hold(lasting(want("b", 0)))
		r.revokeFails(revoking(g), lock.RateLimited)
		other := revoking(g)
		other.By.Tenant = "elsewhere"
		r.revoke(other)
		after(3 * time.Minute)
		r.revoke(revoking(r.hold(want("c", 0))))
	})
}

// TestRevokeOutlivesItsOperator: a revocation finishes even if the operator disconnects.
func TestRevokeOutlivesItsOperator(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		g := r.hold(want("orders:1", 0))
		ctx, cancel := context.WithCancel(t.Context())
		r.store.on(func(ctx context.Context, do func() error) error {
			cancel()
			return errors.Join(ctx.Err(), do())
		}, remove)
		if _, err := r.Revoke(ctx, revoking(g)); err != nil {
			t.Errorf("the revocation was given up: %v", err)
		}
		if n := len(s.onRecord(t)); n != 1 || len(s.ids()) != 0 {
			t.Errorf("%d are on record, and %d entries there", n, len(s.ids()))
		}
	})
}

// TestRevokeSeenElsewhere: an id comes again under its key, and the operator saw the later entry
// at another replica. One whose view is late does not tell him that it is another one.
func TestRevokeSeenElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		b := s.replica(t)
		draft := &lock.Entry{
			ID: "by-hand", Tenant: "acme", Holder: "somebody", TTL: time.Hour, Request: "r",
			Claims: []lock.Claim{{Name: "orders:1", Mode: lock.Exclusive}}, EnqueuedAt: time.Now(),
		}
		first, _, err := s.insert(draft)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.store.setFeed(frozen)
		c := s.Connect(nil)
		defer c.Close()
		if err := c.Remove(t.Context(), first, lock.Withdrawn); err != nil {
			t.Fatal(err)
		}
		second, _, err := s.insert(draft)
		if err != nil || second.ID != first.ID || second.Number == first.Number {
			t.Fatalf("again: %+v, %v", second, err)
		}
		b.store.on(func(_ context.Context, do func() error) error {
			b.store.setFeed(running)
			return do()
		}, newest)
		b.revoke(revoking(&service.Grant{Entry: second}))
		if n := len(s.onRecord(t)); n != 1 || len(s.ids()) != 0 {
			t.Errorf("%d are on record, and %d entries there", n, len(s.ids()))
		}
	})
}

// TestRevokeAllAsksOnce: for a request with very many missing entries the service asks the store
// once, not for each.
func TestRevokeAllAsksOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		known := revoking(r.hold(lasting(want("a", 0))))
		r.store.setFeed(frozen)
		seen := revoking(&service.Grant{Entry: s.occupy(t, "b")}) // by an operator at another replica
		unknown := seen
		unknown.ID = "5mdrk1w5pvy0wg1dcjt2b2gthr"
		r.store.on(func(_ context.Context, do func() error) error {
			defer r.store.setFeed(running)
			return do()
		}, newest)
		before := r.store.count(newest)
		var got []lock.Code
		for _, out := range r.RevokeAll(
			t.Context(), []service.RevokeRequest{known, unknown, seen, unknown, unknown},
		) {
			var e *lock.Error
			if errors.As(out.Err, &e) {
				got = append(got, e.Code)
			} else {
				got = append(got, "")
			}
		}
		if diff := cmp.Diff([]lock.Code{"", lock.Lost, "", lock.Lost, lock.Lost}, got); diff != "" {
			t.Errorf("outcomes (-want +got)\n%s", diff)
		}
		if n := r.store.count(newest) - before; n != 1 {
			t.Errorf("the store is asked %d times what is new", n)
		}
	})
}
