package row_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/row"
)

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 7.4: "7", 322: "322", 999.4: "999", 1000: "1 000", 5367: "5 370", 11249: "11 200", 999_999: "1 000 000",
		math.NaN(): "–",
	} {
		if got := row.Number(f); got != want {
			t.Errorf("%v is written %q, want %q", f, got, want)
		}
	}
}

func TestOutcomeOfAComparison(t *testing.T) {
	pairs := []load.Pair{{Ours: 1400, Theirs: 100}, {Ours: 1500, Theirs: 100}, {Ours: 1300, Theirs: 100}}
	want := row.Outcome{
		ID: "S0", What: "test", Ours: "1 400/s", Theirs: "100/s",
		Ratio: "14.00× (13.00–15.00)", Bar: "≥ 14×", Met: row.Reached,
		OurP50: "1.00 ms", OurP99: "1.00 ms", TheirP50: "2.00 ms", TheirP99: "2.00 ms",
	}
	got := row.Compared(pairs, time.Millisecond, 2*time.Millisecond, 14)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := row.Compared(pairs, 0, 0, 14.01); got.Met != row.Missed {
		t.Errorf("a ratio of 14 meets a bar of 14.01: %+v", got)
	}
}

func TestOutcomeOfLatencies(t *testing.T) {
	pairs := []load.Pair{{Ours: 0.006, Theirs: 0.002}, {Ours: 0.006, Theirs: 0.002}}
	want := row.Outcome{Ours: "6.00 ms", Theirs: "2.00 ms", Ratio: "3.00× (3.00–3.00)", Bar: "≤ 3×", Met: row.Reached}
	only := cmpopts.IgnoreFields(row.Outcome{}, "ID", "What", "Notes", "OurP50", "OurP99", "TheirP50", "TheirP99")
	if diff := cmp.Diff(want, row.ComparedP99(pairs, 5000), only); diff != "" {
		t.Error(diff)
	}
	pairs[0].Ours, pairs[1].Ours = 0.007, 0.007
	if got := row.ComparedP99(pairs, 5000); got.Met != row.Missed {
		t.Errorf("3.5 times the latency meets a bar of 3: %+v", got)
	}
}

func TestOutcomeOfCost(t *testing.T) {
	pairs := []load.Pair{{Ours: 0.000_350, Theirs: 0.001_400}, {Ours: 0.000_350, Theirs: 0.001_400}}
	want := row.Outcome{Ours: "350 µs", Theirs: "1400 µs", Ratio: "0.25× (0.25–0.25)", Bar: "≤ 0.25×", Met: row.Reached}
	only := cmpopts.IgnoreFields(row.Outcome{}, "ID", "What", "Notes", "OurP50", "OurP99", "TheirP50", "TheirP99")
	if diff := cmp.Diff(want, row.ComparedCost(pairs), only); diff != "" {
		t.Error(diff)
	}
	pairs[0].Ours, pairs[1].Ours = 0.000_360, 0.000_360
	if got := row.ComparedCost(pairs); got.Met != row.Missed {
		t.Errorf("0.257 times the time meets a bar of 0.25: %+v", got)
	}
}
