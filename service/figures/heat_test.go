package figures_test

import (
	"math"
	"testing"
	"time"

	"github.com/fencepost/fencepost/service/figures"
)

// TestHeat: each step has its part of the waits, and old steps are dropped.
func TestHeat(t *testing.T) {
	var h figures.Heat
	h.Waiting(after(0), 4)
	h.Waiting(after(45*time.Second), 1)
	h.Waiting(after(60*time.Second), 0)
	cells := h.Read(after(70 * time.Second))
	got := cells[figures.HeatSteps-3:]
	for i, want := range []float64{4, 2.5, 0} {
		if math.Abs(got[i]-want) > 0.01 {
			t.Errorf("the cells are %v, want 4, 2.5 and 0", got)
			break
		}
	}
	if h.Idle(after(2*time.Minute)) || !h.Idle(after(20*time.Minute)) {
		t.Error("it is idle when nobody has waited for a quarter of an hour")
	}
	h.Waiting(after(time.Hour), 2)
	for i, n := range h.Read(after(3 * time.Hour)) {
		if math.Abs(n-2) > 0.01 && i > 0 && i < figures.HeatSteps-1 {
			t.Errorf("in step %d there were %v, want 2", i, n)
		}
	}
}
