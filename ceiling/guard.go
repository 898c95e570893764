package ceiling

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// What of the ceiling Go's runtime may have, in percent. The rest is for what it does
	// not count: the store's file as far as it is mapped, and the system's buffers.
	ofRuntime = 80

	// fullAt is from how much of that on there is no room for new work, and roomAt below
	// how much there is again, in percent: above it the collector would run all the time.
	fullAt = 75
	roomAt = 70

	every = 100 * time.Millisecond

	// collectAfter is how long to wait for a collection that shows that there is room
	// again: without new work there may be none for minutes.
	collectAfter = 2 * time.Second
)

// Guard says whether there is room for new work. It is safe for concurrent use.
type Guard struct {
	limit uint64 // of Go's runtime, in bytes; 0 is none
	used  func() (bytes, collections uint64)
	full  atomic.Bool

	collect func()
	seen    uint64    // collections
	since   time.Time // of the last one that was seen
}

// NewGuard has the collector keep below most of so many bytes, unless somebody has set a lower
// limit for it, and returns a guard of that. 0 bytes have no ceiling.
func NewGuard(bytes uint64) *Guard {
	g := &Guard{used: used, collect: runtime.GC}
	if bytes == 0 {
		return g
	}
	g.limit = bytes / 100 * ofRuntime
	if was := debug.SetMemoryLimit(-1); uint64(was) > g.limit {
		debug.SetMemoryLimit(int64(g.limit))
	} else {
		g.limit = uint64(was)
	}
	return g
}

// Full reports whether there is no room for new work.
func (g *Guard) Full() bool { return g.full.Load() }

// Run looks ten times a second until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	if g.limit == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			g.look(now)
		}
	}
}

func (g *Guard) look(now time.Time) {
	bytes, collections := g.used()
	if collections != g.seen {
		g.seen, g.since = collections, now
	}
	switch percent := bytes / (g.limit / 100); {
	case percent >= fullAt:
		g.full.Store(true)
	case percent < roomAt:
		g.full.Store(false)
	}
	if g.Full() && now.Sub(g.since) >= collectAfter {
		g.collect()
	}
}

// used is what is in use as of the last collection: what was live then, and what the runtime
// has besides for stacks and itself. What a collection would free is not counted.
func used() (bytes, collections uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	at := func(i int) uint64 { return samples[i].Value.Uint64() }
	besides := at(2) - min(at(2), at(3)+at(4)+at(5)+at(6))
	return at(0) + besides, at(1)
}
