package figures_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/figures"
)

// entry is number n, of one exclusive lock.
func entry(tenant, name string, n uint64) *lock.Entry {
	return &lock.Entry{
		ID: lock.ID(fmt.Sprintf("%026d", n)), Tenant: tenant, Holder: "w", Number: n,
		Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}},
	}
}

func happened(f *figures.Figures, e *lock.Entry, kind lock.EventKind) {
	f.Happened(
		&lock.Event{ID: lock.EventID{Number: e.Number}, Kind: kind, Entry: e, At: start}, 0, nil,
	)
}

func grant(f *figures.Figures, e *lock.Entry, at time.Time) {
	f.Happened(&lock.Event{Kind: lock.EventAcquired, Entry: e, Held: true, At: at}, 0, nil)
}

// TestEventsAreBounded: of one lock, and of all; the tenant with most events loses some first.
func TestEventsAreBounded(t *testing.T) {
	f, number := figures.New(0), uint64(0)
	use := func(tenant, name string) {
		number++
		happened(f, entry(tenant, name, number), lock.EventAcquired)
	}
	of := func(tenant, name string) []figures.Past {
		return f.History(lock.Ref{Tenant: tenant, Name: name}, start).Past
	}
	use("quiet", "a")
	for range 200 {
		use("quiet", "often")
	}
	for i := range 50 * 2500 {
		use("loud", fmt.Sprintf("l%d", i%2500))
	}
	kept := 0
	for i := range 2500 {
		kept += len(of("loud", fmt.Sprintf("l%d", i)))
	}
	if kept > 100_000 || kept < 90_000 {
		t.Errorf("%d events are kept, want at most 100 000", kept)
	}
	past := of("quiet", "often")
	if len(past) != figures.MaxPast || past[0].Number != 201 || past[1].Number != 200 {
		t.Errorf("%d events of one lock: %+v", len(past), past[:2])
	}
	if past := of("quiet", "a"); len(past) != 1 {
		t.Errorf("a quiet tenant has %d events, want 1", len(past))
	}
}

// TestSeriesAreBounded: of too many tenants, the one where nothing happened for longest is dropped.
func TestSeriesAreBounded(t *testing.T) {
	f := figures.New(0)
	for n := range 300 {
		grant(f, entry(fmt.Sprintf("t%d", n), "a", 1), after(time.Duration(n)*time.Second))
	}
	kept, now := 0, after(5*time.Minute)
	for n := range 300 {
		kept += f.Series(fmt.Sprintf("t%d", n), figures.Step, now).Whole.Grants
	}
	if all := f.Series("", figures.Step, now).Whole.Grants; kept != 200 || all != 300 {
		t.Errorf("%d of %d are kept by tenants, want 200 of 300", kept, all)
	}
}

// TestHeatOfDroppedLocks: Heats reports when the heat of a lock was dropped that was waited for.
func TestHeatOfDroppedLocks(t *testing.T) {
	f := figures.New(10)
	wait := func(n int) { f.Waiting(lock.Ref{Tenant: "acme", Name: fmt.Sprint(n)}, 1, start) }
	for n := range 10 {
		wait(n)
	}
	if heats, cut := f.Heats(start); len(heats) != 10 || cut {
		t.Errorf("%d are kept, cut %t", len(heats), cut)
	}
	wait(10)
	if heats, cut := f.Heats(start); len(heats) != 10 || !cut {
		t.Errorf("%d are kept, cut %t", len(heats), cut)
	}
}

// TestLeastRecentlyUsedLockIsDropped: of the tenant with most, or of the one with the oldest.
func TestLeastRecentlyUsedLockIsDropped(t *testing.T) {
	f, number := figures.New(6), uint64(0)
	use := func(tenant, name string) {
		number++
		grant(f, entry(tenant, name, number), start)
	}
	known := func(tenant, name string) bool {
		return f.Of(lock.Ref{Tenant: tenant, Name: name}).Acquisitions > 0
	}
	use("quiet", "a")
	for _, name := range []string{"a", "b", "c", "d", "e", "a", "f"} {
		use("busy", name)
	}
	if !known("quiet", "a") || known("busy", "b") || !known("busy", "a") {
		t.Error("the busy tenant did not lose its least recently used lock")
	}
	f = figures.New(2)
	use("one", "a")
	use("two", "a")
	use("one", "a")
	use("three", "a")
	if !known("one", "a") || known("two", "a") {
		t.Error("of tenants with one lock each, the least recently used was not dropped")
	}
}

// TestSignsOfOneLock: the last 10 are kept, and an entry counts once as too late.
func TestSignsOfOneLock(t *testing.T) {
	f, r := figures.New(0), lock.Ref{Tenant: "acme", Name: "a"}
	for n := range uint64(20) {
		for range 2 {
			f.Sign(r, figures.Sign{
				Kind: figures.RenewedTooLate, Entry: entry("acme", "a", n).ID, Number: n, At: start,
			})
		}
	}
	h := f.History(r, start)
	if len(h.Signs) != 10 || h.Signs[0].Number != 19 || h.TooLate != 20 || h.Late != 0 {
		t.Errorf("%d too late, %d late: %+v", h.TooLate, h.Late, h.Signs)
	}
}

// TestExpiredSets: the locks of a set that expired are known by its id and number, of the sets
// that expired last.
func TestExpiredSets(t *testing.T) {
	f := figures.New(0)
	expire := func(n uint64, name string) lock.ID {
		e := entry("acme", name, n)
		e.Set = true
		happened(f, e, lock.EventExpired)
		return e.ID
	}
	first := expire(1, "a")
	if got := f.SetOf(first, 1); len(got) != 1 || got[0] != "a" {
		t.Errorf("the set had %q", got)
	}
	if got := f.SetOf(first, 2); got != nil {
		t.Errorf("another set of the same id had %q", got)
	}
	for n := range uint64(3000) {
		expire(n+2, "b")
	}
	if old, last := f.SetOf(first, 1), f.SetOf(entry("", "", 3001).ID, 3001); old != nil ||
		len(last) != 1 {
		t.Errorf("the oldest had %q, the latest %q", old, last)
	}
}

// TestRenewals: the last renewal of an entry at this replica is known.
func TestRenewals(t *testing.T) {
	f := figures.New(0)
	f.Renewed("a", start)
	for n := range uint64(60_000) {
		f.Renewed(entry("", "", n).ID, start)
	}
	if last := f.Renewed("a", after(time.Second)); !last.Equal(start) {
		t.Errorf("the last renewal was at %v", last)
	}
}
