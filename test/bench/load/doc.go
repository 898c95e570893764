// Package load makes load on a lock service and measures what came of it.
//
// Two kinds of load: [Closed], in which each worker starts its next cycle when
// the last one ended, gives the most that a server can do; [Open], in which
// cycles start at a fixed rate whatever the server does, gives latencies that a
// stall of the server cannot hide, because they count from the intended start.
//
// [History] checks what a contended lock did: order, fences, overlap.
package load
