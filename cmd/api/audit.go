package main

import (
	"context"
	"sync"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
)

// newAudit returns what is on record of operators, which one of the replicas trims until stop
// is called, which waits for that.
func newAudit(t *telemetry.Telemetry, records store.RecordStore, replicas *service.Replicas) (l *audit.Log, stop func()) {
	l = audit.NewLog(records, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx, func() bool { return replicas.Sharing().Does("audit") }, t.Logger()) })
	return l, func() {
		cancel()
		running.Wait()
	}
}
