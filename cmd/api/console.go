package main

import (
	"context"
	"sync"

	"github.com/fencepost/fencepost/service"
)

// newConsole returns what operators see, which is kept up until stop is called, which waits
// for that.
func newConsole(s *service.Service, replicas *service.Replicas) (c *service.Console, stop func()) {
	c = service.NewConsole(service.ConsoleConfig{Service: s, Self: replicas.Sharing().Self, Replicas: replicas.Live})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	return c, func() {
		cancel()
		running.Wait()
	}
}
