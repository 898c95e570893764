package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// handleSignals returns a context that ends at the first SIGINT or SIGTERM. The second SIGINT
// ends the process; a repeated SIGTERM, which some supervisors send, does not.
func handleSignals() (ctx context.Context, stop context.CancelFunc) {
	signal.Ignore(ignoredSignals()...)
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	return ctx, stop
}
