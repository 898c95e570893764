package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// TestPastIsBounded: of one lock, and of all; where there is no room, the tenant with most gives way.
func TestPastIsBounded(t *testing.T) {
	v, number := empty(), uint64(0)
	v.Reset(store.Snapshot{})
	use := func(tenant, name string) {
		number++
		e := &lock.Entry{ID: view.NumberedID(number), Tenant: tenant, Holder: "w", Number: number, EnqueuedAt: time.Now(), Claims: []lock.Claim{{Name: name, Mode: lock.Exclusive}}}
		v.Apply(number, []store.Change{{Number: number, Joined: e}})
		number++
		v.Apply(number, []store.Change{{Number: number, Left: e.ID, Reason: lock.Released}})
	}
	use("quiet", "a")
	for range 200 {
		use("quiet", "often")
	}
	for i := range 21 * 2500 {
		use("loud", fmt.Sprintf("l%d", i%2500))
	}
	if kept := v.PastKept(); kept > 100_000 {
		t.Errorf("%d events are kept", kept)
	}
	h := v.History(lock.Ref{Tenant: "quiet", Name: "often"})
	if len(h.Past) != view.MaxPast || h.Past[0].Kind != lock.EventReleased || h.Past[0].Number != h.Past[1].Number || h.Past[1].Number <= h.Past[2].Number {
		t.Errorf("%d events of one lock: %+v", len(h.Past), h.Past[:3])
	}
	if h := v.History(lock.Ref{Tenant: "quiet", Name: "a"}); len(h.Past) != 2 {
		t.Errorf("a quiet tenant has %d events, want 2", len(h.Past))
	}
}

// TestSeriesAreBounded: beyond so many tenants, the one where nothing happened for longest gives way.
func TestSeriesAreBounded(t *testing.T) {
	v := empty()
	v.Reset(store.Snapshot{})
	for n := range uint64(300) {
		e := &lock.Entry{ID: view.NumberedID(n), Tenant: fmt.Sprintf("t%d", n), Number: n + 1, EnqueuedAt: time.Now(), Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}}}
		v.Apply(n+1, []store.Change{{Number: n + 1, Joined: e}})
	}
	kept := 0
	for n := range 300 {
		kept += v.Series(fmt.Sprintf("t%d", n)).Read(time.Now()).Whole.Grants
	}
	if all := v.Series("").Read(time.Now()).Whole.Grants; kept != 200 || all != 300 {
		t.Errorf("%d of %d are kept by tenants, want 200 of 300", kept, all)
	}
}

// TestHeatsAreBounded: what finds no room is not kept, and that is said.
func TestHeatsAreBounded(t *testing.T) {
	v, _ := line(5001, 2)
	heats, full := v.Heats(time.Now())
	if len(heats) != 5000 || !full {
		t.Errorf("%d are kept, full %t", len(heats), full)
	}
	v, _ = line(10, 2)
	if heats, full := v.Heats(time.Now()); len(heats) != 10 || full {
		t.Errorf("%d are kept, full %t", len(heats), full)
	}
}
