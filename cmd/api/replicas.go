package main

import (
	"crypto/rand"
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
