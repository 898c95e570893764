package main

import (
	"context"
	"os"
	"sync"

	"github.com/fencepost/fencepost/ceiling"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/service/events"
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
}

// roomIn has connections take half of the memory, large answers a sixteenth, and events, which
// are kept twice, a sixteenth.
func roomIn(bytes uint64) room {
	const plenty = 2 << 30
	if bytes == 0 || bytes >= plenty*2 {
		return room{connections: maxConnections}
	}
	r := room{connections: min(maxConnections, int(bytes/2/perConnection))}
	if bytes < plenty/2 {
		r.answers = int(bytes / 16)
		r.events = events.Config{Bytes: int(bytes / 32), TenantBytes: int(bytes / 128)}
	}
	return r
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
