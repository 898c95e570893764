package store_test

import (
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/store"
)

// TestTurns: tenants take turns, the one that has most gives way by its newest, and nothing is left of those
// of whom nothing waits.
func TestTurns(t *testing.T) {
	var turns store.Turns[string]
	if turns.Drop(0) {
		t.Error("something was dropped of nothing")
	}
	for i := range 4 {
		turns.Add("busy", "busy"+strconv.Itoa(i))
	}
	turns.Add("calm", "calm0")
	if turns.Drop(4) || turns.Len() != 5 {
		t.Errorf("%d are left of a tenant that has no more than it may", turns.Of("busy"))
	}
	if !turns.Drop(3) || turns.Of("busy") != 3 || turns.Of("calm") != 1 {
		t.Errorf("%d of busy and %d of calm are left", turns.Of("busy"), turns.Of("calm"))
	}
	for _, want := range []string{"busy0", "calm0", "busy1", "busy2"} {
		if got, ok := turns.Next(); !ok || got != want {
			t.Errorf("next is %q, want %q", got, want)
		}
	}
	if _, ok := turns.Next(); ok || turns.Len() != 0 {
		t.Errorf("%d are left of none", turns.Len())
	}
	for i := range 10 {
		turns.Add(strconv.Itoa(i), "")
	}
	if waiting, order := turns.Tenants(); waiting != 10 || order != 10 {
		t.Errorf("%d tenants in %d turns, want 10 each", waiting, order)
	}
	for turns.Drop(0) {
	}
	if waiting, order := turns.Tenants(); waiting != 0 || order != 0 || turns.Len() != 0 {
		t.Errorf("%d tenants and %d turns are left of nothing", waiting, order)
	}
}
