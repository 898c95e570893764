package outbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
)

// callable is a replica of a tenant that has a secret for its callbacks.
func callable(t *testing.T, w *world) *replica {
	t.Helper()
	r, _ := warm(t, w)
	w.callbackSecret()
	return r
}

func (w *world) callbackSecret() {
	w.t.Helper()
	if _, err := w.hooks.RotateCallback(w.t.Context(), actor(principal("acme"))); err != nil {
		w.t.Fatal(err)
	}
	<-time.After(2 * time.Second)
}

// asyncSet is an async entry of several locks, with a callback.
func (w *world) asyncSet(r *replica, names ...string) *service.Grant {
	w.t.Helper()
	req := acquire("acme", "", 20*time.Second)
	req.Claims, req.Set, req.Async, req.Callback = nil, true, true, &lock.Callback{
		URL: there, Secret: "current",
	}
	for _, name := range names {
		req.Claims = append(req.Claims, lock.Claim{Name: name, Mode: lock.Exclusive})
	}
	g, err := r.Acquire(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// TestCallbackOfASet: a waiter for a set gets one callback with all its locks and the token that
// releases it.
func TestCallbackOfASet(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		a, b := r.take("acme", "a"), r.take("acme", "b")
		g := w.asyncSet(r, "a", "b", "c")
		r.release("acme", "a", a)
		<-time.After(2 * time.Second)
		if got := w.received(there); len(got) != 0 {
			t.Fatalf("before it has all of them it is told %+v", got)
		}
		r.release("acme", "b", b)
		w.untilTold(5*time.Second, there, "", 1)
		told := w.received(there)[0].event
		if !slices.Equal(told.Data.Locks, []string{"a", "b", "c"}) ||
			told.Data.Entry.Token != g.Token || told.Type != string(lock.EventAcquired) {
			t.Errorf("told %+v with %+v", told, told.Data.Entry)
		}
		if err := r.Release(
			t.Context(), service.TokenRequest{Tenant: "acme", Set: true, Token: told.Data.Entry.Token},
		); err != nil {
			t.Errorf("the token releases nothing: %v", err)
		}
		<-time.After(time.Minute)
		if got := w.received(there); len(got) != 1 {
			t.Errorf("told %+v", got)
		}
	})
}

// TestCallbackOfEachEnd: a waiter gets a callback without a token if another ends its wait,
// and none if it ends by itself or after the grant.
func TestCallbackOfEachEnd(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(w *world, r *replica, blocker, g *service.Grant)
		want []string
	}{
		"wait timeout": {
			func(*world, *replica, *service.Grant, *service.Grant) {}, []string{"lock.wait_timeout"},
		},
		"withdrawn": {
			func(_ *world, r *replica, _, g *service.Grant) { r.release("acme", "batch", g) }, nil,
		},
		"revoked while it waits": {
			func(w *world, r *replica, _, g *service.Grant) { w.revoke(r, g) }, []string{"lock.revoked"},
		},
		"released": {func(_ *world, r *replica, blocker, g *service.Grant) {
			r.release("acme", "batch", blocker)
			<-time.After(time.Second)
			r.release("acme", "batch", g)
		}, []string{"lock.acquired"}},
		"expired": {
			func(_ *world, r *replica, blocker, _ *service.Grant) { r.release("acme", "batch", blocker) },
			[]string{"lock.acquired"},
		},
		"revoked while it holds": {func(w *world, r *replica, blocker, g *service.Grant) {
			r.release("acme", "batch", blocker)
			<-time.After(time.Second)
			w.revoke(r, g)
		}, []string{"lock.acquired"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r := callable(t, w)
				blocker := r.takeFor("acme", "batch", 50*time.Second)
				g := w.async(r, "batch", 10*time.Second)
				<-time.After(time.Second)
				c.ends(w, r, blocker, g)
				<-time.After(45 * time.Second)
				if got := kindsOf(w.received(there), ""); !slices.Equal(got, c.want) {
					t.Errorf("told %v, want %v", got, c.want)
				}
				for _, one := range w.received(there) {
					if held := one.event.Type ==
						string(lock.EventAcquired); held != (one.event.Data.Entry.Token == g.Token) {
						t.Errorf("%s is told with the token %q", one.event.Type, one.event.Data.Entry.Token)
					}
				}
			})
		})
	}
}

// TestCallbackOfTheSuperseded: the client of an entry that gives way to a newer one learns it.
func TestCallbackOfTheSuperseded(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := callable(t, w)
		r.takeFor("acme", "batch", 50*time.Second)
		var all []*service.Grant
		for range 2 {
			req := acquire("acme", "batch", 20*time.Second)
			req.Async, req.OnlyNewest = true, true
			req.Callback = &lock.Callback{URL: there, Secret: "current"}
			g, err := r.Acquire(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, g)
		}
		w.untilTold(5*time.Second, there, "", 1)
		told := w.received(there)[0].event
		if told.Type != string(lock.EventSuperseded) || told.Data.Entry.ID != string(all[0].Entry.ID) {
			t.Errorf("told %s of %+v", told.Type, told.Data.Entry)
		}
	})
}

func (w *world) revoke(r *replica, g *service.Grant) {
	w.t.Helper()
	req := service.RevokeRequest{
		Tenant: "acme", Name: "batch", ID: g.Entry.ID, Fence: g.Entry.Number,
		Reason: "it hangs for hours", By: audit.Who{Subject: "operator"},
	}
	if _, err := r.Revoke(w.t.Context(), req); err != nil {
		w.t.Fatal(err)
	}
}

// TestLongestFits: an event of a set with the longest names, holder and metadata fits the
// bound, for subscriptions and for its caller.
func TestLongestFits(t *testing.T) {
	for name, letter := range map[string]string{"plain": "x", "escaped": "<", "quoted": `"`} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				r := callable(t, w)
				longest := 0
				w.setBehave(func(_ string, m webhook.Message) webhook.Result {
					longest = max(longest, len(m.Payload))
					return webhook.Result{Outcome: webhook.Delivered}
				})
				req := acquire("acme", "", time.Minute)
				req.Claims, req.Set, req.Async, req.Callback = nil, true, true, &lock.Callback{
					URL: there, Secret: "current",
				}
				for i := range lock.MaxSetSize {
					req.Claims = append(req.Claims, lock.Claim{
						Name: fmt.Sprintf("%03d", i) + strings.Repeat("x", lock.MaxNameLength-3),
						Mode: lock.Exclusive,
					})
				}
				req.Holder = strings.Repeat(letter, lock.MaxHolderLength)
				req.Metadata = map[string]string{"k": strings.Repeat(letter, lock.MaxMetadataSize-1)}
				if _, err := r.Acquire(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				poll.Within(t, 10*time.Second, "both are told", func() bool {
					return len(w.received(there)) > 0 && slices.ContainsFunc(
						w.received(here),
						func(one received) bool { return len(one.event.Data.Locks) == lock.MaxSetSize },
					)
				})
				if longest > webhook.MaxPayload {
					t.Errorf("a payload has %d bytes", longest)
				}
			})
		})
	}
}
