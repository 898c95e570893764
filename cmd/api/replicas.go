package main

import (
	"crypto/rand"
	"os"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/telemetry"
)

// newReplicas returns the list of replicas that serve the store, for this process, which shows
// in the metrics how many there are.
func newReplicas(records replicas.Records, t *telemetry.Telemetry) *replicas.List {
	self := replicas.Replica{
		ID: rand.Text(), Host: hostName(), Version: thisBuild().version, Started: time.Now().UTC(),
	}
	replicas := replicas.New(records, self, t.Logger())
	t.Metrics().ObserveReplicas(func() (int, bool) {
		live, known := replicas.Live()
		return len(live), known
	})
	return replicas
}

// hostName returns the name of this host, which in a pod is the pod's name. It returns "" for a
// name that a page cannot show.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || lock.CheckHolder(name) != "" {
		return ""
	}
	return name
}
