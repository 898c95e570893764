package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/test/bubble"
)

func (r *replica) console() *service.Console {
	return service.NewConsole(service.ConsoleConfig{Service: r.Service, Self: "r1"})
}

func historyOf(t *testing.T, c *service.Console, name string) *service.History {
	t.Helper()
	h, err := c.History(t.Context(), ref(name))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestLateRenewals: what comes after two thirds of the lease is late, as far as the replica knows
// of the renewal before.
func TestLateRenewals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a := s.replica(t)
		c := a.console()
		g := a.hold(want("orders:1", 0))
		for _, pause := range []time.Duration{ttl / 3, ttl / 3, ttl/3*2 + time.Second, ttl / 3} {
			after(pause)
			a.renew(g)
		}
		h := historyOf(t, c, "orders:1")
		if h.Late != 1 || h.TooLate != 0 || len(h.Signs) != 1 {
			t.Fatalf("%d late and %d too late, %+v, want one late", h.Late, h.TooLate, h.Signs)
		}
		if s := h.Signs[0]; s.Kind != figures.RenewedLate || s.Entry != g.Entry.ID ||
			s.After != ttl/3*2+time.Second || s.TTL != ttl || s.Holder != g.Entry.Holder {
			t.Errorf("%+v", s)
		}
		late := a.line(want("orders:1", time.Hour))
		after(ttl * 5 / 6) // its replica keeps it meanwhile
		a.renew(g)
		a.release(g)
		a.renew(late.holds())
		if h := historyOf(t, c, "orders:1"); h.Late != 2 {
			t.Errorf("%d are late: who waited counts from his grant", h.Late)
		}
	})
}

// TestWorkedAfterExpiry: by how much it was too late, and once for each entry.
func TestWorkedAfterExpiry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a := s.replica(t)
		c := a.console()
		g := a.hold(want("orders:1", 0))
		after(ttl + 7*time.Second)
		_, err := a.Renew(t.Context(), by(g))
		lostFor(t, err, lock.Expired)
		lostFor(t, a.Release(t.Context(), by(g)), lock.Expired)
		h := historyOf(t, c, "orders:1")
		if h.TooLate != 1 || len(h.Signs) != 1 || h.Signs[0].After != 7*time.Second ||
			h.Signs[0].Holder != g.Entry.Holder {
			t.Errorf("%d too late: %+v", h.TooLate, h.Signs)
		}
		if sum := historyOf(t, c, "orders:2"); sum.TooLate != 0 {
			t.Errorf("another lock has it too: %+v", sum.Signs)
		}
	})
}

// TestHeatOfIdleLocks: the heat shows recent waiters until the lock was idle for the whole
// period.
func TestHeatOfIdleLocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).replica(t)
		c := a.console()
		a.hold(lasting(want("orders:1", 0)))
		waits := a.line(want("orders:1", time.Hour))
		after(time.Minute)
		waits.cancel()
		<-waits.done
		after((figures.HeatSteps - 2) * figures.HeatStep)
		if h := historyOf(t, c, "orders:1"); len(h.Heat) != figures.HeatSteps || h.HeatFrom.IsZero() {
			t.Errorf("from %v on %v waited", h.HeatFrom, h.Heat)
		}
		after(2 * figures.HeatStep)
		if h := historyOf(t, c, "orders:1"); h.Heat != nil || !h.HeatFrom.IsZero() {
			t.Errorf("nobody has waited lately, and from %v on %v did", h.HeatFrom, h.Heat)
		}
	})
}

// TestSeriesOverAGap: waiters count again after a list, separately for each tenant.
func TestSeriesOverAGap(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		a, b := s.replica(t), s.replica(t)
		c := b.console()
		g := a.hold(want("orders:1", 0))
		a.line(want("orders:1", time.Hour))
		waiting := a.line(want("orders:1", time.Hour))
		after(10 * time.Second)
		b.store.setFeed(lost)
		waiting.cancel()
		synctest.Wait()
		a.renew(g)
		after(20 * time.Second)
		b.store.setFeed(running)
		a.renew(g)
		after(20 * time.Second)
		sum, err := c.Series("acme", figures.Step)
		if err != nil {
			t.Fatal(err)
		}
		if last := sum.Points[len(sum.Points)-2]; last.Waiting < 0.99 || last.Waiting > 1.01 {
			t.Errorf("%v wait after the gap, want 1", last.Waiting)
		}
		if last := sum.Points[len(sum.Points)-2]; last.Holding < 0.99 || last.Holding > 1.01 {
			t.Errorf("%v hold after the gap, want 1", last.Holding)
		}
		if other, _ := c.Series("other", figures.Step); len(other.Points) != 0 {
			t.Errorf("another tenant has %+v", other.Points)
		}
		all, _ := c.Series("", figures.Step)
		if last := all.Points[len(all.Points)-2]; last.Holding < 0.99 || last.Holding > 1.01 {
			t.Errorf("%v hold in all tenants, want 1", last.Holding)
		}
		if all.Whole.Grants != sum.Whole.Grants || sum.Whole.Grants != 1 {
			t.Errorf("%d grants of %d in all, want 1", sum.Whole.Grants, all.Whole.Grants)
		}
		m, err := c.HeatMap(lists.Sight{}, 10)
		if err != nil || len(m.Rows) != 1 || m.Truncated {
			t.Fatalf("%+v, %v", m, err)
		}
		if cells := m.Rows[0].Cells; cells[len(cells)-1] < 0.9 || cells[len(cells)-1] > 2.1 {
			t.Errorf("the last cell is %v", cells[len(cells)-1])
		}
	})
}
