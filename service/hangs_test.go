package service_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock/blocking"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestHangingHoldersComeFirst: a lock whose holder keeps it for longer than usual comes before one
// with a longer queue whose holders change, and before one that is always held for long.
func TestHangingHoldersComeFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).replica(t)
		as := func(name, holder string) service.AcquireRequest {
			req := lasting(want(name, time.Hour))
			req.Holder = holder
			return req
		}
		for name, usual := range map[string]time.Duration{
			"busy": 200 * time.Millisecond, "stuck": 200 * time.Millisecond, "slow": time.Minute,
		} {
			for range 12 {
				g := a.hold(as(name, "past"))
				after(usual)
				a.release(g)
			}
		}
		first := a.hold(as("busy", "quick"))
		second := a.line(as("busy", "second"))
		for range 8 {
			a.line(as("busy", "crowd"))
		}
		after(20 * time.Second)
		for _, name := range []string{"stuck", "unknown", "slow"} {
			a.hold(as(name, "of "+name))
			a.line(as(name, "waiter"))
		}
		after(10 * time.Second)
		a.release(first)
		second.holds()
		after(100 * time.Millisecond)

		names := []string{"stuck", "unknown", "busy", "slow"}
		hangs, usual := []bool{true, true, false, false}, []time.Duration{
			200 * time.Millisecond, 0, 30 * time.Second, time.Minute,
		}
		o, err := a.console().Overview(lists.Sight{Tenant: "acme"})
		if err != nil || len(o.Worst) != len(names) {
			t.Fatalf("%+v, %v", o, err)
		}
		for i, l := range o.Worst {
			if l.Name != names[i] || l.Hangs != hangs[i] || far(l.Usual, usual[i]) {
				t.Errorf("the overview has %s, hangs %t, usual %v", l.Name, l.Hangs, l.Usual)
			}
		}
		b, err := a.console().Blocking(lists.Sight{Tenant: "acme"}, 3)
		if err != nil || len(b.Trees) != 3 || b.Heads != len(names) {
			t.Fatalf("%+v, %v", b, err)
		}
		for i, tree := range b.Trees[:2] {
			h := tree.Heads[0]
			at := slices.Index(names, h.Lock)
			if at > 1 || !h.Hangs || far(h.Usual, usual[at]) {
				t.Errorf("tree %d is of %s, hangs %t, usual %v", i, h.Lock, h.Hangs, h.Usual)
			}
		}
		if slices.ContainsFunc(b.Trees[2].Heads, func(h blocking.Head) bool { return h.Hangs }) {
			t.Errorf("%+v hangs", b.Trees[2].Heads)
		}
	})
}

func far(got, want time.Duration) bool { return (got - want).Abs() > want/4 }
