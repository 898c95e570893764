package deadlock_test

import (
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/locktest"
)

// TestBarredTry: while a closure keeps a try from holding, it is in nobody's way. If it is still
// there when the lock is opened, it holds, and who waits for ever because of that is rejected.
func TestBarredTry(t *testing.T) {
	h := newHall(t)
	c := lock.NewClosure(locktest.Closing("closure", 1, "t", "*"), &lock.Roll{})
	h.table.Close(c)
	try, waits := named("try", 2, "x", "a"), named("waits", 3, "x", "a")
	for _, e := range []*lock.Entry{tries(try), waits} {
		if holds, err := h.table.Insert(e); holds || err != nil {
			t.Fatal(holds, err)
		}
		h.table.Detect()
	}
	if r := h.table.Rejection("waits"); r != nil {
		t.Fatalf("rejected while the lock is closed: %+v", r)
	}
	h.table.Open(c)
	h.table.Detect()
	if r := h.table.Rejection("waits"); r == nil || len(r.Cycle) != 1 {
		t.Errorf("rejected when the lock is open: %+v, want a cycle of one", r)
	}
}
