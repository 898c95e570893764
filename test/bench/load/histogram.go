package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts durations from 1 µs to a minute with an error below 0.1 %.
// Longer ones count as a minute. The zero value is not usable: [NewHistogram].
type Histogram struct{ h *hdrhistogram.Histogram }

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{hdrhistogram.New(1, time.Minute.Microseconds(), 3)}
}

// Record counts d.
func (h *Histogram) Record(d time.Duration) {
	us := min(max(d.Microseconds(), 1), time.Minute.Microseconds())
	if err := h.h.RecordValue(us); err != nil {
		panic("histogram refuses a value within its own range: " + err.Error())
	}
}

// Merge adds the counts of other.
func (h *Histogram) Merge(other *Histogram) { h.h.Merge(other.h) }

// Count returns how many durations were recorded.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Mean returns the mean duration, 0 when nothing was recorded.
func (h *Histogram) Mean() time.Duration {
	return time.Duration(h.h.Mean() * float64(time.Microsecond))
}

// Percentile returns the duration that p percent (0 to 100) do not exceed, 0
// when nothing was recorded.
func (h *Histogram) Percentile(p float64) time.Duration {
	return time.Duration(h.h.ValueAtQuantile(p)) * time.Microsecond
}
