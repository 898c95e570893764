package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/test/poll"
)

// TestGateAlternatesBetweenTenants: the waiters of one tenant keep their order, and another tenant
// comes between them.
func TestGateAlternatesBetweenTenants(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := handlers.NewGate(1)
		if err := g.Enter(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
		entered := make(chan string, 8)
		for _, who := range []string{"a 1", "a 2", "a 3", "b 1", "a 4", "c 1", "b 2"} {
			go func() {
				if err := g.Enter(t.Context(), who[:1]); err == nil {
					entered <- who
				}
			}()
			synctest.Wait()
		}
		var got []string
		for range 7 {
			g.Leave()
			got = append(got, <-entered)
		}
		want := []string{"a 1", "b 1", "c 1", "a 2", "b 2", "a 3", "a 4"}
		if !slices.Equal(got, want) {
			t.Errorf("they enter as %v, want %v", got, want)
		}
		g.Leave()
		if err := g.Enter(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestGateRejectsOverItsBounds: of a tenant and in all, at once, and of the tenant with most.
func TestGateRejectsOverItsBounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := handlers.NewGate(1)
		ctx, stop := context.WithCancel(t.Context())
		if err := g.Enter(ctx, "busy"); err != nil {
			t.Fatal(err)
		}
		for i := range handlers.MaxGateWaiters {
			go func() { _ = g.Enter(ctx, fmt.Sprint("tenant", i/handlers.MaxGateWaitersOfTenant)) }()
			if i == handlers.MaxGateWaitersOfTenant {
				synctest.Wait()
				if err := g.Enter(ctx, "tenant0"); !errors.Is(err, lock.Overloaded) {
					t.Errorf("one more of a tenant: %v", err)
				}
			}
		}
		synctest.Wait()
		rejected := 0
		for range handlers.MaxGateWaitersOfTenant {
			go func() {
				if err := g.Enter(ctx, "other"); errors.Is(err, lock.Overloaded) {
					rejected++
				}
			}()
			synctest.Wait()
		}
		if n, kept := g.Waiting(); n != handlers.MaxGateWaiters || kept != n || rejected == 0 {
			t.Errorf("%d wait, %d are kept, %d of another tenant are rejected", n, kept, rejected)
		}
		if rejected > handlers.MaxGateWaitersOfTenant/5 {
			t.Errorf("%d of another tenant are rejected", rejected)
		}
		stop()
		synctest.Wait()
		if n, kept := g.Waiting(); n != 0 || kept != 0 {
			t.Errorf("%d wait when all are gone, %d are kept", n, kept)
		}
		g.Leave()
		if err := g.Enter(t.Context(), "other"); err != nil {
			t.Error(err)
		}
	})
}

// TestOnlyWalksWaitAtTheGate: while all slots are taken, a list waits, and an acquire, a renewal, a
// release and a look at a short queue do not.
func TestOnlyWalksWaitAtTheGate(t *testing.T) {
	t.Parallel()
	router := handlers.New(shared.handlers(shared.main.service))
	r := serve(nil, router)
	t.Cleanup(r.close)
	for range handlers.GateSlots() {
		if err := router.Gate().Enter(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
	}
	c := newTenant(t).at(r)
	list := c.start("GET", "/locks")
	poll.Until(t, "the list waits", func() bool { n, _ := router.Gate().Waiting(); return n == 1 })
	e := c.acquire("a")
	c.put("/locks/a/renew", lockToken(e.Token)).wantStatus(http.StatusOK)
	c.get("/locks/a").wantStatus(http.StatusOK)
	c.release(e)
	gone := c.start("GET", "/locks?prefix=a")
	poll.Until(t, "another waits", func() bool { n, _ := router.Gate().Waiting(); return n == 2 })
	gone.cancel()
	poll.Until(
		t,
		"it leaves with its client",
		func() bool { n, _ := router.Gate().Waiting(); return n == 1 },
	)
	if list.answered() {
		t.Error("it is answered")
	}
	router.Gate().Leave()
	list.wait().wantStatus(http.StatusOK)
}

// TestLooksAtLongQueuesWaitAtTheGate: such a look copies a thousand waiters.
func TestLooksAtLongQueuesWaitAtTheGate(t *testing.T) {
	t.Parallel()
	router := handlers.New(shared.handlers(shared.main.service))
	r := serve(nil, router)
	t.Cleanup(r.close)
	c := newTenant(t).at(r)
	c.acquire("long")
	for range 100 {
		c.post("/locks/long", body(`{"wait_seconds":60,"async":true}`)).wantStatus(http.StatusAccepted)
	}
	for range handlers.GateSlots() {
		if err := router.Gate().Enter(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
	}
	look := c.start("GET", "/locks/long?consistent=true")
	poll.Until(t, "the look waits", func() bool { n, _ := router.Gate().Waiting(); return n == 1 })
	router.Gate().Leave()
	look.wait().wantStatus(http.StatusOK)
}
