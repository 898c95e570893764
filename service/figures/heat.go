package figures

import "time"

const (
	// HeatStep is the length of one cell of a [Heat], and HeatSteps the number of cells: a quarter
	// of an hour.
	HeatStep  = 30 * time.Second
	HeatSteps = 30
)

// Heat holds the average number of waiters of one lock, in steps. The zero value is ready.
type Heat struct {
	cells   [HeatSteps]float32 // entry-seconds, indexed by the number of the step
	last    int64
	since   int64 // in nanoseconds: waiters are counted up to here
	waiting int32
}

// Waiting records how many entries wait from now on.
func (h *Heat) Waiting(now time.Time, n int) {
	h.settle(now.UnixNano())
	h.waiting = int32(min(n, 1<<30))
}

// Idle reports whether no entry waited in any step that is kept.
func (h *Heat) Idle(now time.Time) bool {
	return h.waiting == 0 && now.UnixNano()/int64(HeatStep)-h.last >= HeatSteps
}

func (h *Heat) settle(now int64) {
	if first := now - HeatSteps*int64(HeatStep); h.since < first {
		h.since = first
	}
	for h.waiting > 0 && h.since < now {
		n := h.since / int64(HeatStep)
		end := min((n+1)*int64(HeatStep), now)
		h.turn(n)
		h.cells[n%HeatSteps] += float32(h.waiting) * float32(time.Duration(end-h.since).Seconds())
		h.since = end
	}
	h.since = max(h.since, now)
	h.turn(now / int64(HeatStep))
}

func (h *Heat) turn(to int64) {
	for n := max(h.last+1, to-HeatSteps+1); n <= to; n++ {
		h.cells[n%HeatSteps] = 0
	}
	h.last = max(h.last, to)
}

// Read returns the average number of waiters in each step up to an instant, the oldest first. The
// last step is not over. It works on a copy.
func (h Heat) Read(now time.Time) (cells []float64) {
	h.settle(now.UnixNano())
	for n := h.last - HeatSteps + 1; n <= h.last; n++ {
		over := HeatStep
		if n == h.last {
			over = max(time.Duration(now.UnixNano()-n*int64(HeatStep)), time.Second)
		}
		cells = append(cells, float64(h.cells[n%HeatSteps])/over.Seconds())
	}
	return cells
}

// HeatFrom returns the start of the first known step at an instant.
func HeatFrom(now time.Time) time.Time {
	step := now.UnixNano()/int64(HeatStep) - HeatSteps + 1
	return time.Unix(0, step*int64(HeatStep))
}
