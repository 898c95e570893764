package main

import (
	"runtime"
	"runtime/metrics"
)

const (
	// maxBallast times what [gcPercent] lets the heap grow to is 256 MiB: with less live than that
	// the collector ran several times a second, for a tenth of the server's processor time.
	maxBallast = 64 << 20

	// ofBallast is which part of the memory that there is the ballast may be at most.
	ofBallast = 64
)

// carryBallast has the heap be collected less often while little of it is live: it allocates bytes
// that nobody touches, so that they take addresses and no memory, and that count as live. It goes
// by how much memory there is, 0 if nobody says, and leaves alone a collector that GOGC sets.
func carryBallast(ceiling uint64) (drop func()) {
	n := uint64(maxBallast)
	if ceiling > 0 {
		n = min(n, ceiling/ofBallast)
	}
	if collectorPercent() != gcPercent {
		n = 0
	}
	ballast := make([]byte, n)
	return func() { runtime.KeepAlive(ballast) }
}

// collectorPercent is by how much the heap may grow before it is collected, in percent of what is live.
func collectorPercent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
