package row

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

func TestBarIsMissedWhenTheRatioIsBelowOrAbove(t *testing.T) {
	rounds := func(ours float64) []load.Pair {
		return []load.Pair{
			{Ours: ours - 1, Theirs: 10},
			{Ours: ours, Theirs: 10},
			{Ours: ours + 1, Theirs: 10},
		}
	}
	for _, tt := range []struct {
		ours float64
		bar  bar
		met  Verdict
	}{
		{60, atLeast(6), Reached},
		{59, atLeast(6), Missed},
		{40, atMost(4), Reached},
		{41, atMost(4), Missed},
		{41, bar{}, NoBar},
	} {
		var o Outcome
		if o.compared(rounds(tt.ours), perSecond, tt.bar); o.Met != tt.met {
			t.Errorf("ratio %s and bar %q: %v, want %v", o.Ratio, o.Bar, o.Met, tt.met)
		}
	}
}

func TestHostileWayMissesItsBarByAcquiresOrByReleases(t *testing.T) {
	slow := []load.Pair{{Ours: 0.030, Theirs: 0.005}}
	fast := []load.Pair{{Ours: 0.020, Theirs: 0.001}}
	for _, tt := range []struct {
		pairs []load.Pair
		ended time.Duration
		met   Verdict
	}{
		{fast, 100 * time.Millisecond, Reached},
		{fast, 101 * time.Millisecond, Missed},
		{slow, time.Millisecond, Missed},
	} {
		if o := (hostileWay{}).outcome(tt.pairs, tt.ended, 0, 0); o.Met != tt.met {
			t.Errorf("%s (%s), releases %v: %v, want %v", o.Ours, o.Ratio, tt.ended, o.Met, tt.met)
		}
	}
}
