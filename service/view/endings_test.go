package view_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// TestEndsTakeLittleMemory: what is kept of an entry that ended is a few bytes,
// however large the entry was.
func TestEndsTakeLittleMemory(t *testing.T) {
	const most = 48 // bytes each
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, n := range []uint64{view.MaxTenantEnds * 5 / 8, view.MaxTenantEnds} {
		before, now := heap(), time.Now()
		e := view.NewEnds(view.MaxEnds, view.MaxTenantEnds)
		for i := range n {
			e.Record("acme", view.NumberedID(i), lock.Released, now)
		}
		if kept, _ := e.Len(); kept != int(n) {
			t.Fatalf("%d ends are kept, want %d", kept, n)
		}
		each := float64(heap()-before) / float64(n)
		t.Logf("%d ends: %.1f bytes each", n, each)
		if each > most {
			t.Errorf("an end takes %.1f bytes, want at most %d", each, most)
		}
		runtime.KeepAlive(e)
	}
}

// TestReasonsOfOperatorsGoWithTheirEnds: they are dropped with the end, and when its id has another
// one, and there is a bound.
func TestReasonsOfOperatorsGoWithTheirEnds(t *testing.T) {
	const chunk = 512
	e, now := view.NewEnds(2*chunk, 2*chunk), time.Now()
	first, again := view.NumberedID(0), view.NumberedID(1)
	e.Explain(first, "too early")
	if got := e.RevokeReason(first); got != "" {
		t.Errorf("of an end that is not known %q is kept", got)
	}
	for _, id := range []lock.ID{first, again} {
		e.Record("acme", id, lock.Revoked, now)
		e.Explain(id, "node lost")
	}
	e.Record("acme", again, lock.Released, now)
	if e.RevokeReason(first) != "node lost" || e.RevokeReason(again) != "" {
		t.Errorf("%q and %q are kept", e.RevokeReason(first), e.RevokeReason(again))
	}
	for n := range uint64(3 * chunk) {
		e.Record("acme", view.NumberedID(2+n), lock.Released, now)
	}
	if e.Reason(first, now) != "" || e.RevokeReason(first) != "" {
		t.Error("the reason outlives its end")
	}

	e, kept := view.NewEnds(view.MaxEnds, view.MaxTenantEnds), 0
	for n := range uint64(view.MaxRevoked + 10) {
		e.Record("acme", view.NumberedID(n), lock.Revoked, now)
		e.Explain(view.NumberedID(n), "x")
	}
	for n := range uint64(view.MaxRevoked + 10) {
		if e.RevokeReason(view.NumberedID(n)) != "" {
			kept++
		}
	}
	if kept != view.MaxRevoked {
		t.Errorf("%d reasons are kept, want %d", kept, view.MaxRevoked)
	}
}

// TestEndsAreBounded: a tenant's oldest ends are forgotten when it has too many, and
// when there are too many in all, the oldest of the one that has most.
func TestEndsAreBounded(t *testing.T) {
	const most, ofTenant, chunk = 10_000, 6_000, 512
	e, now, n := view.NewEnds(most, ofTenant), time.Now(), uint64(0)
	ids := map[string][]lock.ID{}
	record := func(tenant string, count int) {
		for range count {
			id := view.NumberedID(n)
			n++
			e.Record(tenant, id, lock.Released, now)
			ids[tenant] = append(ids[tenant], id)
		}
	}
	known := func(tenant string) (count int) { // the newest without a gap
		for i := len(ids[tenant]) - 1; i >= 0 && e.Reason(ids[tenant][i], now) != ""; i-- {
			count++
		}
		return count
	}
	record("quiet", 100)
	record("loud", 20_000)
	if got := known("loud"); got > ofTenant || got < ofTenant-chunk || known("quiet") != 100 {
		t.Errorf(
			"%d ends of the loud tenant are known and %d of the quiet one, want %d and 100", got,
			known("quiet"), ofTenant,
		)
	}
	record("second", 3_800)
	record("third", 3_000)
	if got := known("loud"); got > 3_800 || got < 2_000 || known("second") < 3_000 ||
		known("third") != 3_000 || known("quiet") != 100 {
		t.Errorf("%d, %d, %d and %d ends are known", got, known("second"), known("third"), known("quiet"))
	}
	if all, accounts := e.Len(); all > most || all < most-chunk || accounts != 4 {
		t.Errorf("%d ends of %d tenants are kept, want %d of 4", all, accounts, most)
	}
}

// TestOldEndsMakeRoom: what is over is forgotten while others come, and so are
// tenants that have nothing left.
func TestOldEndsMakeRoom(t *testing.T) {
	e, now := view.NewEnds(view.MaxEnds, view.MaxTenantEnds), time.Now()
	for i := range uint64(5_000) {
		e.Record("gone", view.NumberedID(i), lock.Expired, now)
	}
	now = now.Add(12 * time.Minute)
	for i := range uint64(5_000) {
		e.Record("here", view.NumberedID(5_000+i), lock.Released, now)
	}
	if ends, accounts := e.Len(); ends != 5_000 || accounts != 1 {
		t.Errorf("%d ends of %d tenants are kept, want the newest 5000 of 1", ends, accounts)
	}
}

// TestLatestEndCounts: what is recalled from before does not count more than what
// was seen, and an id that was forgotten can end again.
func TestLatestEndCounts(t *testing.T) {
	e, now, id := view.NewEnds(100, 100), time.Now(), view.NumberedID(1)
	e.Recall(id, lock.Expired, now)
	e.Record("acme", id, lock.Released, now)
	e.Recall(id, lock.Revoked, now)
	if why := e.Reason(id, now); why != lock.Released {
		t.Errorf("it was %s, want released", why)
	}
	for range 255 { // lists are counted in a byte
		e.Listed()
	}
	again := view.NumberedID(2)
	e.Recall(again, lock.Expired, now)
	e.Recall(again, lock.Revoked, now)
	if why := e.Reason(again, now); why != lock.Revoked {
		t.Errorf("after many lists it was %s, want revoked, of which the store has told last", why)
	}
	later := now.Add(12 * time.Minute)
	if why := e.Reason(id, later); why != "" {
		t.Errorf("it is still %s after 12 minutes", why)
	}
	e.Record("acme", id, lock.WaitTimeout, later)
	for i := range uint64(50) { // the first end is swept away meanwhile
		e.Record("acme", view.NumberedID(100+i), lock.Released, later)
	}
	if why := e.Reason(id, later); why != lock.WaitTimeout {
		t.Errorf("the second time it was %s, want wait_timeout", why)
	}
}
