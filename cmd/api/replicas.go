package main

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/telemetry"
)

// newReplicas returns the list of those that serve the store, for this process, which shows
// in the metrics how many there are.
func newReplicas(records service.ReplicaRecords, t *telemetry.Telemetry) *service.Replicas {
	self := service.Replica{ID: rand.Text(), Version: thisBuild().version, Started: time.Now().UTC()}
	replicas := service.NewReplicas(records, self, t.Logger())
	t.Metrics().ObserveReplicas(func() (int, bool) {
		live, known := replicas.Live()
		return len(live), known
	})
	return replicas
}

// list has this process on the list while it sees what happens in the store, until stop is
// called, which waits for that.
func list(replicas *service.Replicas, s *service.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { replicas.Run(ctx, s.Current) })
	return func() {
		cancel()
		running.Wait()
	}
}
