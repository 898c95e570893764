package load_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

func TestHistoryChecks(t *testing.T) {
	const onTheWay = 3
	good := load.History{
		{Worker: 0, Fence: 1, Sent: 0, Granted: 1, Released: 5},
		{Worker: 1, Fence: 2, Sent: 2, Granted: 6, Released: 8},
		{Worker: 2, Fence: 4, Sent: 3, Granted: 9, Released: 10},
		{Worker: 0, Fence: 5, Sent: 6, Granted: 11, Released: 12},
	}
	overlap := append(load.History{{Worker: 3, Fence: 3, Sent: 6, Granted: 7, Released: 20}}, good...)
	repeated := append(
		load.History{{Worker: 3, Fence: 5, Sent: 10, Granted: 13, Released: 14}},
		good...)
	backwards := append(
		load.History{{Worker: 3, Fence: 3, Sent: 10, Granted: 13, Released: 14}},
		good...)
	// Worker 9 asked first.
	overtaken := load.History{
		{Worker: 0, Fence: 1, Sent: 1, Granted: 2, Released: 3},
		{Worker: 0, Fence: 2, Sent: 4, Granted: 5, Released: 6},
		{Worker: 9, Fence: 4, Sent: 0, Granted: 10, Released: 11},
	}
	raced := load.History{
		{Worker: 0, Fence: 1, Sent: 1, Granted: 2, Released: 3},
		{Worker: 0, Fence: 2, Sent: 4, Granted: 5, Released: 6},
		{Worker: 9, Fence: 4, Sent: 1, Granted: 10, Released: 11},
	}
	for name, tt := range map[string]struct {
		history                 load.History
		exclusion, fences, fair bool
	}{
		"empty":           {nil, true, true, true},
		"good":            {good, true, true, true},
		"two holders":     {overlap, false, true, true},
		"fence twice":     {repeated, true, false, true},
		"fence went back": {backwards, true, false, true},
		"overtaken":       {overtaken, true, true, false},
		"raced":           {raced, true, true, true},
	} {
		for check, err := range map[string]struct {
			got  error
			want bool
		}{
			"exclusion": {tt.history.CheckExclusion(), tt.exclusion},
			"fences":    {tt.history.CheckFences(), tt.fences},
			"fairness":  {tt.history.CheckFair(onTheWay), tt.fair},
		} {
			if (err.got == nil) != err.want {
				t.Errorf("%s: %s: %v, want ok: %v", name, check, err.got, err.want)
			}
			if err.got != nil && !strings.Contains(err.got.Error(), check) {
				t.Errorf("%s: error %q does not name %s", name, err.got, check)
			}
		}
	}
}

func TestHandovers(t *testing.T) {
	ms := time.Millisecond
	h := load.History{
		{Fence: 3, Granted: 30 * ms, Released: 31 * ms}, // ends the last handover
		{Fence: 1, Granted: 10 * ms, Released: 12 * ms},
		{Fence: 2, Granted: 17 * ms, Released: 20 * ms},
	}
	if got := h.Handovers(0); got.Count() != 2 || got.Mean() < 7400*time.Microsecond ||
		got.Mean() > 7600*time.Microsecond {
		t.Errorf("%d handovers with mean %v, want 2 with 7.5ms", got.Count(), got.Mean())
	}
	if got := h.Handovers(15 * ms); got.Count() != 1 || got.Percentile(100) < 9*ms {
		t.Errorf(
			"%d handovers from 15ms on, the longest %v; want 1 of 10ms", got.Count(), got.Percentile(100),
		)
	}
}
