package row

import (
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// Number is how the table writes a figure.
func Number(f float64) string { return number(f) }

// Compared is the line of a row in which each round gave a pair of cycles per
// second, and every acquire took the time given.
func Compared(pairs []load.Pair, ours, theirs time.Duration, atLeast float64) Outcome {
	return comparisonOf(pairs, ours, theirs).outcome("S0", "test", atLeast)
}

// ComparedP99 is the line of S10 in which each round gave a pair of p99s in seconds.
func ComparedP99(pairs []load.Pair, rate float64) Outcome {
	return comparisonOf(pairs, 0, 0).outcomeS10(rate)
}

// ComparedCost is the line of S16 in which each round gave a pair of seconds for a cycle.
func ComparedCost(pairs []load.Pair) Outcome {
	return comparisonOf(pairs, 0, 0).outcomeOfCost(s16())
}

func comparisonOf(pairs []load.Pair, ours, theirs time.Duration) *comparison {
	c := &comparison{pairs: pairs, ours: load.NewHistogram(), theirs: load.NewHistogram()}
	c.ours.Record(ours)
	c.theirs.Record(theirs)
	return c
}
