package load_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/test/bench/load"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, math.NaN()},
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{9, 1, 5, 6}, 5.5},
	} {
		if got := load.Median(tt.values); !cmp.Equal(got, tt.want, cmpopts.EquateNaNs()) {
			t.Errorf("Median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestMedianLeavesItsArgumentAlone(t *testing.T) {
	values := []float64{3, 1, 2}
	load.Median(values)
	if diff := cmp.Diff([]float64{3, 1, 2}, values); diff != "" {
		t.Error(diff)
	}
}

// The median of the ratios is 10; the ratio of the medians, 9, would mix rounds.
func TestSummarizePairsRounds(t *testing.T) {
	got := load.Summarize([]load.Pair{{Ours: 100, Theirs: 10}, {Ours: 30, Theirs: 2}, {Ours: 90, Theirs: 12}})
	want := load.Summary{Ours: 90, Theirs: 10, Ratio: 10, Lowest: 7.5, Highest: 15}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSummarizeNothing(t *testing.T) {
	nan := math.NaN()
	want := load.Summary{Ours: nan, Theirs: nan, Ratio: nan, Lowest: nan, Highest: nan}
	if diff := cmp.Diff(want, load.Summarize(nil), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

func TestHistogramPercentiles(t *testing.T) {
	h := load.NewHistogram()
	for i := 1; i <= 1000; i++ {
		h.Record(time.Duration(i) * time.Millisecond)
	}
	for p, want := range map[float64]time.Duration{50: 500 * time.Millisecond, 99: 990 * time.Millisecond, 100: time.Second} {
		if got := h.Percentile(p); math.Abs(float64(got-want)) > 0.001*float64(want) {
			t.Errorf("p%v = %v, want %v within 0.1 %%", p, got, want)
		}
	}
	if got, want := h.Mean(), 500500*time.Microsecond; math.Abs(float64(got-want)) > 0.001*float64(want) {
		t.Errorf("mean = %v, want %v", got, want)
	}
}

func TestHistogramKeepsValuesOutsideItsRange(t *testing.T) {
	h := load.NewHistogram()
	h.Record(0)
	h.Record(-time.Second)
	h.Record(time.Hour)
	if h.Count() != 3 || h.Percentile(100) < 59*time.Second {
		t.Errorf("count %d, highest %v; want 3 and a minute", h.Count(), h.Percentile(100))
	}
}

func TestHistogramMerge(t *testing.T) {
	a, b := load.NewHistogram(), load.NewHistogram()
	a.Record(time.Millisecond)
	b.Record(3 * time.Millisecond)
	a.Merge(b)
	if a.Count() != 2 || a.Percentile(100) < 2900*time.Microsecond {
		t.Errorf("count %d, highest %v after a merge", a.Count(), a.Percentile(100))
	}
}
