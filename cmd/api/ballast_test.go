package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestBallast: it counts as live, goes by what there is, and leaves alone a collector that
// somebody else has set.
func TestBallast(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	for name, c := range map[string]struct {
		percent int
		ceiling uint64
		want    int
	}{
		"Plenty":     {gcPercent, 16 << 30, maxBallast},
		"NobodySays": {gcPercent, 0, maxBallast},
		"Little":     {gcPercent, 512 << 20, 8 << 20},
		"GOGC":       {100, 16 << 30, 0},
		"GOGCOff":    {-1, 16 << 30, 0},
	} {
		debug.SetGCPercent(c.percent)
		live := liveBytes()
		drop := carryBallast(c.ceiling)
		if more := liveBytes() - live; more < c.want-slack || more > c.want+slack {
			t.Errorf("%s: %d bytes more are live, want %d", name, more, c.want)
		}
		drop()
	}
}

// slack is what else may come and go meanwhile.
const slack = 4 << 20

func liveBytes() int {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
