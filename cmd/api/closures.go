package main

import (
	"context"
	"sync"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
)

// newClosures returns the closures, kept up to date until stop is called, which waits for that.
func newClosures(t *telemetry.Telemetry, records store.RecordStore, journal *audit.Journal) (book *closures.Book, stop func()) {
	book = closures.New(closures.Config{Records: records, Journal: journal, Logger: t.Logger()})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { book.Run(ctx) })
	return book, func() {
		cancel()
		running.Wait()
	}
}
