package load

import (
	"math"
	"slices"
)

// Median returns the middle value, the mean of the two middle ones when their
// number is even, NaN when there is none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}

// Pair is one figure of each side, measured right after each other, so that
// whatever else the machine did at the time touched both.
type Pair struct{ Ours, Theirs float64 }

// Ratio returns ours over theirs.
func (p Pair) Ratio() float64 { return p.Ours / p.Theirs }

// Summary is what several pairs say together.
type Summary struct {
	// Ours and Theirs are the medians of each side.
	Ours, Theirs float64
	// Ratio is the median of the pairs' ratios, which differs from the ratio of
	// the medians; Lowest and Highest are the extremes.
	Ratio, Lowest, Highest float64
}

// Summarize returns NaN everywhere when there are no pairs.
func Summarize(pairs []Pair) Summary {
	var ours, theirs, ratios []float64
	for _, p := range pairs {
		ours = append(ours, p.Ours)
		theirs = append(theirs, p.Theirs)
		ratios = append(ratios, p.Ratio())
	}
	s := Summary{
		Ours: Median(ours), Theirs: Median(theirs), Ratio: Median(ratios), Lowest: math.NaN(),
		Highest: math.NaN(),
	}
	if len(ratios) > 0 {
		s.Lowest, s.Highest = slices.Min(ratios), slices.Max(ratios)
	}
	return s
}
