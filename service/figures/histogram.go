package figures

import (
	"math"
	"time"
)

const (
	buckets = 46  // up to about 23 h; longer durations count in the last
	factor  = 1.5 // between the bounds of two buckets; the first bucket ends at 1 ms
)

// Histogram counts durations in buckets.
type Histogram [buckets]uint32

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	ms := float64(d) / float64(time.Millisecond)
	if ms <= 1 {
		h[0]++
		return
	}
	h[min(int(math.Ceil(math.Log(ms)/math.Log(factor))), buckets-1)]++
}

// merge adds the counts of another histogram.
func (h *Histogram) merge(other *Histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// Percentiles returns the percentiles; all are 0 if nothing was counted.
func (h *Histogram) Percentiles() (p Percentiles) {
	for _, n := range h {
		p.Samples += int(n)
	}
	p.P50, p.P90, p.P99 = h.at(0.5, p.Samples), h.at(0.9, p.Samples), h.at(0.99, p.Samples)
	return p
}

// at returns the duration that the given part of all does not exceed. It assumes an even spread
// within a bucket.
func (h *Histogram) at(part float64, of int) time.Duration {
	left := part * float64(of)
	for i, n := range h {
		if n == 0 || left > float64(n) {
			left -= float64(n)
			continue
		}
		low, high := 0.0, math.Pow(factor, float64(i))
		if i > 0 {
			low = high / factor
		}
		return time.Duration((low + (high-low)*left/float64(n)) * float64(time.Millisecond))
	}
	return 0
}
