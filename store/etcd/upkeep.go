package etcd

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/store"
)

// upkeepInterval is the time between two records of ends. All replicas write them; each write is
// idempotent.
const upkeepInterval = time.Second

// every runs task at intervals until ctx ends.
func every(ctx context.Context, interval time.Duration, task func()) {
	for store.Pause(ctx, interval) == nil {
		task()
	}
}
