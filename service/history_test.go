package service_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/lists"
	"github.com/fencepost/fencepost/service/series"
	"github.com/fencepost/fencepost/test/bubble"
)

func (r *replica) console() *service.Console {
	return service.NewConsole(service.ConsoleConfig{Service: r.Service, Self: "r1"})
}

func historyOf(t *testing.T, c *service.Console, name string) *service.History {
	t.Helper()
	h, err := c.History(ref(name))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestLateRenewals: what comes after two thirds of the lease is late, as far as the replica knows of
// the renewal before.
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
		if s := h.Signs[0]; s.Kind != service.RenewedLate || s.Entry != g.Entry.ID || s.After != ttl/3*2+time.Second || s.TTL != ttl || s.Holder != g.Entry.Holder {
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
		if h.TooLate != 1 || len(h.Signs) != 1 || h.Signs[0].After != 7*time.Second || h.Signs[0].Holder != g.Entry.Holder {
			t.Errorf("%d too late: %+v", h.TooLate, h.Signs)
		}
		if sum := historyOf(t, c, "orders:2"); sum.TooLate != 0 {
			t.Errorf("another lock has it too: %+v", sum.Signs)
		}
	})
}

// TestEvidenceIsBounded: of one lock the last signs are kept, and of all locks those that had some last.
func TestEvidenceIsBounded(t *testing.T) {
	x := service.NewEvidence()
	for i := range uint64(6000) {
		x.Sign(lock.Ref{Tenant: "acme", Name: "l" + string(service.NumberedID(i))}, i)
		x.Sign(ref("often"), i)
	}
	locks, signs, counted := x.Len(ref("often"))
	if locks != 5000 || signs != 10 || counted != 6000 {
		t.Errorf("%d locks, %d signs of %d, want 5000, 10 of 6000", locks, signs, counted)
	}
	for i := range uint64(200_000) {
		x.Renewal(i)
	}
	if n := x.Renewals(); n > 100_000 {
		t.Errorf("the renewals of %d entries are remembered", n)
	}
}

// TestEvidenceOfTenants: a tenant with evidence of very many locks has that of its own forgotten, and not that of others.
func TestEvidenceOfTenants(t *testing.T) {
	x := service.NewEvidence()
	quiet := lock.Ref{Tenant: "quiet", Name: "a"}
	x.Sign(quiet, 1)
	for i := range uint64(6000) {
		x.Sign(lock.Ref{Tenant: "busy", Name: "l" + string(service.NumberedID(i))}, i)
	}
	locks, signs, _ := x.Len(quiet)
	if locks != 5000 || signs != 1 {
		t.Errorf("%d signs are known of the quiet tenant's lock, and evidence of %d locks, want 1 and 5000", signs, locks)
	}
	if _, signs, _ := x.Len(lock.Ref{Tenant: "busy", Name: "l" + string(service.NumberedID(0))}); signs != 0 {
		t.Error("the first lock of the busy tenant has not made room")
	}
}

// TestEvidenceOfManyTenants: where no tenant has more than others, the lock goes that had evidence longest ago.
func TestEvidenceOfManyTenants(t *testing.T) {
	x := service.NewEvidence()
	of := func(tenant int) lock.Ref { return lock.Ref{Tenant: fmt.Sprintf("t%04d", tenant), Name: "a"} }
	for tenant := range 5000 {
		x.Sign(of(tenant), 1)
	}
	x.Sign(of(0), 2)
	x.Sign(of(5000), 1)
	if _, signs, _ := x.Len(of(0)); signs != 2 {
		t.Errorf("%d signs are known of a lock that had one just now, want 2", signs)
	}
	if _, signs, _ := x.Len(of(1)); signs != 0 {
		t.Error("the lock that had a sign longest ago has not made room")
	}
}

// TestExpiredSets: the locks of a set that expired are known by its id and number, of the last sets that did.
func TestExpiredSets(t *testing.T) {
	x := service.NewEvidence()
	x.ExpiredSet(1, 7, "a", "b")
	if got := x.LocksOf(1, 7); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the set had %q", got)
	}
	x.ExpiredSet(1, 8, "c") // of the same idempotency key
	if got := x.LocksOf(1, 7); len(got) != 0 {
		t.Errorf("an earlier set of the same id had %q", got)
	}
	if got := x.LocksOf(1, 8); !slices.Equal(got, []string{"c"}) {
		t.Errorf("the later set of the same id had %q", got)
	}
	for n := range uint64(3000) {
		x.ExpiredSet(n+2, n+9, "d")
	}
	if sets, listed := x.Sets(); sets != 1000 || listed != 1000 {
		t.Errorf("%d sets are known, %d are listed, want 1000", sets, listed)
	}
	if old, last := x.LocksOf(1, 8), x.LocksOf(3001, 3008); len(old) != 0 || len(last) != 1 {
		t.Errorf("the oldest had %q, the latest %q", old, last)
	}
}

// TestExpiredSetsOfTenants: a tenant of whose sets very many expire has its own forgotten, and not those of others.
func TestExpiredSetsOfTenants(t *testing.T) {
	x := service.NewEvidence()
	known := func(from, to uint64) (n int) {
		for id := from; id < to; id++ {
			n += len(x.LocksOf(id, id+1))
		}
		return n
	}
	expire := func(tenant string, from, to uint64) {
		for id := from; id < to; id++ {
			x.ExpiredSetOf(tenant, id, id+1, "d")
		}
	}
	expire("quiet", 0, 10)
	expire("busy", 10, 3010)
	if quiet, busy := known(0, 10), known(2020, 3010); quiet != 10 || busy != 990 {
		t.Errorf("%d of the quiet tenant's sets are known, and %d of the busy one's last, want 10 and 990", quiet, busy)
	}
	expire("late", 3010, 4010)
	if quiet, busy, late := known(0, 10), known(10, 3010), known(3010, 4010); quiet != 10 || busy != 495 || late != 495 {
		t.Errorf("%d, %d and %d are known, want 10 and the rest by halves", quiet, busy, late)
	}
	expire("late", 3515, 3516) // of an id that is used again: it is the one that expired last
	expire("late", 4010, 4010+494)
	if known(3515, 3516) != 1 || known(4009, 4010) != 0 {
		t.Error("a set of a known id is not kept as the one that expired last")
	}
}

// TestExpiredSetsOfManyTenants: where no tenant has more than others, the set that expired first is forgotten.
func TestExpiredSetsOfManyTenants(t *testing.T) {
	x := service.NewEvidence()
	for id := range uint64(1500) {
		x.ExpiredSetOf(fmt.Sprintf("t%04d", 1500-id), id, id+1, "d")
	}
	for id := range uint64(1500) {
		if known := len(x.LocksOf(id, id+1)) > 0; known != (id >= 500) {
			t.Fatalf("the set %d of 1500 is known: %t", id, known)
		}
	}
}

// TestExpiredSetsAreSmall: of a set that expired the names of its locks are kept, and nothing that they came in.
func TestExpiredSetsAreSmall(t *testing.T) {
	x, before := service.NewEvidence(), heapInUse()
	for n := range uint64(1000) {
		read := strings.Repeat("m", 64<<10)
		x.ExpiredEntry(&lock.Entry{
			ID: service.NumberedID(n), Tenant: "acme", Number: n + 1, Set: true, Metadata: map[string]string{"job": read},
			Claims: []lock.Claim{{Name: read[:10], Mode: lock.Exclusive}},
		})
	}
	if kept := heapInUse() - before; kept > 8<<20 {
		t.Errorf("%d bytes are kept of 1000 sets", kept)
	}
	if names := x.LocksOf(0, 1); len(names) != 1 {
		t.Errorf("the first had %q", names)
	}
}

// heapInUse is how many bytes are in use, after what is not has gone.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestHeatOfIdleLocks: how many waited lately is told, until nobody has for as long as that is kept.
func TestHeatOfIdleLocks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newSharedStore(t).replica(t)
		c := a.console()
		a.hold(lasting(want("orders:1", 0)))
		waits := a.line(want("orders:1", time.Hour))
		after(time.Minute)
		waits.cancel()
		<-waits.done
		after((series.HeatSteps - 2) * series.HeatStep)
		if h := historyOf(t, c, "orders:1"); len(h.Heat) != series.HeatSteps || h.HeatFrom.IsZero() {
			t.Errorf("from %v on %v waited", h.HeatFrom, h.Heat)
		}
		after(2 * series.HeatStep)
		if h := historyOf(t, c, "orders:1"); h.Heat != nil || !h.HeatFrom.IsZero() {
			t.Errorf("nobody has waited lately, and from %v on %v did", h.HeatFrom, h.Heat)
		}
	})
}

// TestSeriesOverAGap: who waits is counted anew after a list, and tenants apart.
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
		sum, err := c.Series("acme")
		if err != nil {
			t.Fatal(err)
		}
		if last := sum.Points[len(sum.Points)-2]; last.Waiting < 0.99 || last.Waiting > 1.01 {
			t.Errorf("%v wait after the gap, want 1", last.Waiting)
		}
		if last := sum.Points[len(sum.Points)-2]; last.Holding < 0.99 || last.Holding > 1.01 {
			t.Errorf("%v hold after the gap, want 1", last.Holding)
		}
		if other, _ := c.Series("other"); len(other.Points) != 0 {
			t.Errorf("another tenant has %+v", other.Points)
		}
		all, _ := c.Series("")
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
