package main

import (
	"context"
	"os"
	"sync"

	"github.com/fencepost/fencepost/ceiling"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/telemetry"
)

// perConnection is what a connection takes with a request that waits over it, in bytes.
const perConnection = 54 << 10

// ceilingBytes is how much memory the server may use; 0 is that nobody says.
func (c *config) ceilingBytes() uint64 {
	if c.memoryMB > 0 {
		return uint64(c.memoryMB) << 20
	}
	return ceiling.Limit(os.DirFS("/"))
}

// room is what follows from the memory that there is: no more than as much as is kept with
// plenty of it.
type room struct {
	connections int
	answers     int // bytes; 0 is plenty
	events      events.Config
	kept        view.Bounds
	pending     batch.Backlog
}

// What a server with plenty of memory has, and what one has at least that has next to none.
const (
	plenty     = 2 << 30
	mostEnds   = 4_000_000
	leastEnds  = 10_000
	perEnd     = 48 // bytes
	mostLocks  = 20_000
	leastLocks = 500
	perLock    = 2 << 10 // bytes of the figures of one
	mostBytes  = 128 << 20
	leastBytes = 2 << 20 // the largest writes have some 100 KiB
	perWrite   = 2 << 10 // bytes, as many as a write has that there may be most of
)

// roomIn has connections take half of the memory, and large answers, events, which are kept twice,
// writes that wait to be sent, and reasons of ends a sixteenth each at most, figures of locks a
// thirty-second.
func roomIn(bytes uint64) room {
	if bytes == 0 || bytes >= plenty*2 {
		return room{connections: maxConnections}
	}
	r := room{
		connections: min(maxConnections, int(bytes/2/perConnection)),
		kept: view.Bounds{
			Ends:    between(leastEnds, bytes/16/perEnd, mostEnds),
			Figures: between(leastLocks, bytes/32/perLock, mostLocks),
		},
		pending: pendingIn(between(leastBytes, bytes/16, mostBytes)),
	}
	if bytes < plenty/2 {
		r.answers = int(bytes / 16)
		r.events = events.Config{Bytes: int(bytes / 32), TenantBytes: int(bytes / 128)}
	}
	return r
}

func between(least int, n uint64, most int) int { return min(max(least, int(n)), most) }

// pendingIn divides so many bytes as those of a server with plenty are divided: a tenant may have
// a quarter of them, a lock an eighth, and the writes of a tenant or a lock may be smaller.
func pendingIn(bytes int) batch.Backlog {
	writes := bytes / perWrite
	return batch.Backlog{
		InAll:     batch.Size{Writes: writes, Bytes: bytes},
		PerTenant: batch.Size{Writes: writes / 2, Bytes: bytes / 4},
		PerKey:    batch.Size{Writes: writes / 4, Bytes: bytes / 8},
	}
}

// guardMemory keeps the server below its memory until stop is called, which waits for that.
func guardMemory(bytes uint64, t *telemetry.Telemetry) (g handlers.Memory, stop func()) {
	guard := ceiling.NewGuard(bytes)
	t.Logger().Info("memory that may be used", "bytes", bytes)
	t.Metrics().ObserveMemory(guard.Full)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { guard.Run(ctx) })
	return guard, func() {
		cancel()
		running.Wait()
	}
}
