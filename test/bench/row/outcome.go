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
	// Ratio is the median over the rounds, Spread the lowest and highest.
	Ratio, Spread string
	Bar           string
	Met           Verdict
	// OurLatency and TheirLatency are p50 and p99 of an acquire.
	OurLatency, TheirLatency string
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

// bar is the bound of a figure. The zero value is none: the figure is for orientation.
type bar struct{ least, most float64 }

func atLeast(f float64) bar { return bar{least: f} }
func atMost(f float64) bar  { return bar{most: f} }

// of returns the bar as text, and whether f meets it.
func (b bar) of(f float64) (string, Verdict) {
	switch {
	case b.least > 0:
		return "≥ " + trim(b.least) + "×", verdict(f >= b.least)
	case b.most > 0:
		return "≤ " + trim(b.most) + "×", verdict(f <= b.most)
	}
	return "", NoBar
}

// compared fills in a figure of both sides and its ratio.
func (o *Outcome) compared(pairs []load.Pair, text func(float64) string, b bar) load.Summary {
	s := load.Summarize(pairs)
	o.Ours, o.Theirs = text(s.Ours), text(s.Theirs)
	o.Ratio = fmt.Sprintf("%.2f×", s.Ratio)
	o.Spread = fmt.Sprintf("%.2f–%.2f", s.Lowest, s.Highest)
	o.Bar, o.Met = b.of(s.Ratio)
	return s
}

func (o *Outcome) latencies(ours, theirs *load.Histogram) {
	o.OurLatency, o.TheirLatency = latency(ours), latency(theirs)
}

func latency(h *load.Histogram) string {
	return millis(h.Percentile(50)) + ", " + millis(h.Percentile(99))
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
