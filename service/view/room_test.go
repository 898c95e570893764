package view_test

import (
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// roomFor is an entry with metadata that is about to be written.
func roomFor(name string) *lock.Entry {
	return &lock.Entry{
		ID: "5mdrk1w5pvy0wg1dcjt2b2gthr", Tenant: "acme",
		Claims:   []lock.Claim{{Name: name, Mode: lock.Exclusive}},
		Metadata: map[string]string{"job": "nightly"},
	}
}

// TestRoomAllocatesNothing: looking for room is on the way of each acquire.
func TestRoomAllocatesNothing(t *testing.T) {
	v := view.New(view.Config{})
	other := roomFor("b")
	other.ID = "6mdrk1w5pvy0wg1dcjt2b2gthr"
	if err := v.Room(other); err != nil { // so that the tenant has an account
		t.Fatal(err)
	}
	e := roomFor("a")
	if n := testing.AllocsPerRun(1000, func() {
		if err := v.Room(e); err != nil {
			t.Fatal(err)
		}
		v.Leave(e)
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// BenchmarkRoom is what it costs.
func BenchmarkRoom(b *testing.B) {
	v, e := view.New(view.Config{}), roomFor("a")
	for b.Loop() {
		if err := v.Room(e); err != nil {
			b.Fatal(err)
		}
		v.Leave(e)
	}
}

// TestRoomOfWhatIsSeen: an entry that came into the view just before its retry asks counts once.
func TestRoomOfWhatIsSeen(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{})
	seen := roomFor("a")
	seen.Number = 1
	v.Apply(1, []store.Change{{Number: 1, Joined: seen}})
	if err := v.Room(roomFor("a")); err != nil {
		t.Fatal(err)
	}
	if u := v.AccountOf("acme").Used; u[quota.Places] != 1 {
		t.Errorf("one entry: %d places", u[quota.Places])
	}
}
