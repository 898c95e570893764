package row

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// Outcome is one line of the table.
type Outcome struct {
	ID, What string
	// Ours and Theirs are the medians with their unit.
	Ours, Theirs string
	// Ratio is the median over the rounds, with the lowest and highest.
	Ratio string
	Bar   string
	Met   Verdict
	// Latency of an acquire at the median and the 99th percentile.
	OurP50, OurP99, TheirP50, TheirP99 string
	// Notes are sentences that go below the table.
	Notes []string
}

// Verdict says whether a bar was reached.
type Verdict int

// The verdicts. NoBar is that of a row without one.
const (
	NoBar Verdict = iota
	Reached
	Missed
)

func (v Verdict) String() string {
	return map[Verdict]string{NoBar: "–", Reached: "yes", Missed: "no"}[v]
}

func verdict(reached bool) Verdict {
	if reached {
		return Reached
	}
	return Missed
}

// outcome fills a line from a comparison of cycles per second whose ratio has
// to be at least atLeast.
func (c *comparison) outcome(id, what string, atLeast float64) Outcome {
	s := load.Summarize(c.pairs)
	return Outcome{
		ID: id, What: what,
		Ours: number(s.Ours) + "/s", Theirs: number(s.Theirs) + "/s",
		Ratio: spread(s), Bar: fmt.Sprintf("≥ %s×", trim(atLeast)), Met: verdict(s.Ratio >= atLeast),
		OurP50: millis(c.ours.Percentile(50)), OurP99: millis(c.ours.Percentile(99)),
		TheirP50: millis(c.theirs.Percentile(50)), TheirP99: millis(c.theirs.Percentile(99)),
	}
}

func spread(s load.Summary) string {
	return fmt.Sprintf("%.2f× (%.2f–%.2f)", s.Ratio, s.Lowest, s.Highest)
}

// number rounds to three digits and puts a space between thousands.
func number(f float64) string {
	if math.IsNaN(f) {
		return "–"
	}
	if f >= 1000 {
		unit := math.Pow(10, math.Floor(math.Log10(f))-2)
		f = math.Round(f/unit) * unit
	}
	digits := []byte(strconv.FormatFloat(f, 'f', 0, 64))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = slices.Insert(digits, i, ' ')
	}
	return string(digits)
}

func trim(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64) + " ms"
}
