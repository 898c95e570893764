package main

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/telemetry"
)

// listReplicas puts this process on the list of those that serve the store, and shows in
// the metrics how many there are, until stop is called, which waits for that.
func listReplicas(records service.ReplicaRecords, t *telemetry.Telemetry) (replicas *service.Replicas, stop func()) {
	self := service.Replica{ID: rand.Text(), Version: version, Started: time.Now().UTC()}
	replicas = service.NewReplicas(records, self, t.Logger())
	t.Metrics().ObserveReplicas(func() (int, bool) {
		live, known := replicas.Live()
		return len(live), known
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { replicas.Run(ctx) })
	return replicas, func() {
		cancel()
		running.Wait()
	}
}
