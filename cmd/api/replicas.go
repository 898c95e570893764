package main

import (
	"crypto/rand"
	"time"

	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/telemetry"
)

// newReplicas returns the list of replicas that serve the store, for this process, which shows
// in the metrics how many there are.
func newReplicas(records replicas.Records, t *telemetry.Telemetry) *replicas.List {
	self := replicas.Replica{ID: rand.Text(), Version: thisBuild().version, Started: time.Now().UTC()}
	replicas := replicas.New(records, self, t.Logger())
	t.Metrics().ObserveReplicas(func() (int, bool) {
		live, known := replicas.Live()
		return len(live), known
	})
	return replicas
}
