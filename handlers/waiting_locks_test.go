package handlers

import (
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
)

// TestPositionsAreThoseOfTheirLocks: the view may show an entry after it left queues, in an answer
// about the entry from before.
func TestPositionsAreThoseOfTheirLocks(t *testing.T) {
	a, b := lock.Claim{Name: "a", Mode: lock.Exclusive}, lock.Claim{Name: "b", Mode: lock.Exclusive}
	got := waitingLocks(&service.Grant{
		Entry:  &lock.Entry{Claims: []lock.Claim{a, b}},
		Places: []view.PlaceAt{{Claim: b, Position: 7}},
	})
	if got[0].Position != 0 || got[1].Position != 7 {
		t.Errorf("the positions are %+v, want none of a and 7 of b", got)
	}
}
