package figures

import (
	"math"
	"slices"
	"sort"
	"time"
)

// maxSamples bounds the kept waits and holds of a lock, each.
const maxSamples = 128

// Percentiles are all 0 without samples. Those of a lock are exact, those of a series are
// exact within a factor of 1.5.
type Percentiles struct {
	P50, P90, P99 time.Duration
	Samples       int
}

// Bin counts the samples above the previous bin's bound, up to its own.
type Bin struct {
	UpTo  time.Duration
	Count int
}

// samples are the latest durations, in milliseconds, as a ring buffer.
type samples struct {
	last []float32
	next int
}

func (s *samples) add(d time.Duration) {
	ms := float32(max(d, 0).Seconds() * 1000)
	if len(s.last) < maxSamples {
		s.last = append(s.last, ms)
		return
	}
	s.last[s.next] = ms
	s.next = (s.next + 1) % maxSamples
}

func (s *samples) percentiles() Percentiles {
	if len(s.last) == 0 {
		return Percentiles{}
	}
	sorted := slices.Sorted(slices.Values(s.last))
	at := func(p float64) time.Duration { // nearest rank: of two, p50 is the smaller one
		i := max(int(math.Ceil(p*float64(len(sorted))))-1, 0)
		return time.Duration(float64(sorted[i]) * float64(time.Millisecond))
	}
	return Percentiles{P50: at(0.5), P90: at(0.9), P99: at(0.99), Samples: len(sorted)}
}

// bins counts samples in steps of 1, 2.5 and 5, from 1 ms on. It leaves out empty bins.
func bins(ms []float32) (out []Bin) {
	slices.Sort(ms)
	factors, bound := []float64{2.5, 2, 2}, 1.0
	for at := 0; len(ms) > 0; at++ {
		n := sort.Search(len(ms), func(i int) bool { return float64(ms[i]) > bound })
		if n > 0 {
			out = append(out, Bin{UpTo: time.Duration(bound * float64(time.Millisecond)), Count: n})
		}
		ms, bound = ms[n:], bound*factors[at%len(factors)]
	}
	return out
}
