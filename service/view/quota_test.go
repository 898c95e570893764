package view_test

import (
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// entryFor is an entry with metadata that is about to be written.
func entryFor(name string) *lock.Entry {
	return &lock.Entry{
		ID: "5mdrk1w5pvy0wg1dcjt2b2gthr", Tenant: "acme",
		Claims:   []lock.Claim{{Name: name, Mode: lock.Exclusive}},
		Metadata: map[string]string{"job": "nightly"},
	}
}

// TestReservingAllocatesNothing: a reservation is on the way of each acquire.
func TestReservingAllocatesNothing(t *testing.T) {
	v := view.New(view.Config{})
	other := entryFor("b")
	other.ID = "6mdrk1w5pvy0wg1dcjt2b2gthr"
	if err := v.Quotas.Reserve(other); err != nil { // so that the tenant has an account
		t.Fatal(err)
	}
	e := entryFor("a")
	if n := testing.AllocsPerRun(1000, func() {
		if err := v.Quotas.Reserve(e); err != nil {
			t.Fatal(err)
		}
		v.Quotas.Unreserve(e)
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// BenchmarkReserve is what it costs.
func BenchmarkReserve(b *testing.B) {
	v, e := view.New(view.Config{}), entryFor("a")
	for b.Loop() {
		if err := v.Quotas.Reserve(e); err != nil {
			b.Fatal(err)
		}
		v.Quotas.Unreserve(e)
	}
}

// TestReservationOfWhatIsSeen: an entry that came into the view just before its retry asks counts
// once.
func TestReservationOfWhatIsSeen(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{})
	seen := entryFor("a")
	seen.Number = 1
	v.Apply(1, []store.Change{{Number: 1, Joined: seen}})
	if err := v.Quotas.Reserve(entryFor("a")); err != nil {
		t.Fatal(err)
	}
	if u := v.Quotas.AccountOf("acme").Used; u[quota.Places] != 1 {
		t.Errorf("one entry: %d places", u[quota.Places])
	}
}

// TestReservationOfWhatIsGranted: an entry that is granted ahead of the feed counts until the feed
// shows it, or the store is listed.
func TestReservationOfWhatIsGranted(t *testing.T) {
	v := empty()
	places := func() int { return v.Quotas.AccountOf("acme").Used[quota.Places] }
	v.Reset(store.Snapshot{Number: 6})
	e := entryFor("a")
	grant := func() {
		if err := v.Quotas.Reserve(e); err != nil {
			t.Fatal(err)
		}
		e.Number = 7
		if !v.Quotas.Written(e) {
			t.Fatal("a free lock is not granted")
		}
		if v.Quotas.Unreserve(e); places() != 1 {
			t.Errorf("%d places of an entry that is granted", places())
		}
	}
	grant()
	v.Apply(7, []store.Change{{Number: 7, Joined: e}})
	v.Apply(8, []store.Change{{Number: 8, Left: e.ID, Reason: lock.Released}})
	if places() != 0 {
		t.Errorf("%d places of an entry that is gone", places())
	}
	v.Reset(store.Snapshot{Number: 6})
	grant()
	if v.Reset(store.Snapshot{Number: 8}); places() != 0 {
		t.Errorf("%d places of an entry that was gone when the store was listed", places())
	}
}

// TestNoAccountOfNothing: a list that lacks what was granted ahead leaves no account of its tenant.
func TestNoAccountOfNothing(t *testing.T) {
	v, e := empty(), entryFor("a")
	v.Reset(store.Snapshot{Number: 6})
	if err := v.Quotas.Reserve(e); err != nil {
		t.Fatal(err)
	}
	e.Number = 7
	if !v.Quotas.Written(e) {
		t.Fatal("a free lock is not granted")
	}
	v.Quotas.Unreserve(e)
	if v.Reset(store.Snapshot{Number: 8}); v.Accounts() != 0 {
		t.Errorf("%d accounts of tenants that have nothing", v.Accounts())
	}
}

// TestWritten: an entry is granted ahead of the feed only if the view has all earlier ones, and
// none is in its way.
func TestWritten(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{Number: 5})
	holder := locktest.Entry(view.NumberedID(1), 6, "a")
	v.Apply(6, []store.Change{{Number: 6, Joined: holder}})
	for _, c := range []struct {
		name   string
		number uint64
		holds  bool
	}{{"b", 7, true}, {"b", 8, false}, {"a", 7, false}, {"b", 6, false}} {
		if e := locktest.Entry(view.NumberedID(2), c.number, c.name); v.Quotas.Written(e) != c.holds {
			t.Errorf("%s at %d: granted is %v", c.name, c.number, !c.holds)
		}
	}
	if !v.Quotas.Written(holder) {
		t.Error("an entry that the view shows to hold is not granted")
	}
}
