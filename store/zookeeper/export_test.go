package zookeeper

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// ReadQueue is what Queue does when the feed is late.
func (s *Store) ReadQueue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	return s.readQueue(ctx, r)
}

// Rotate is what the upkeep does long before the names of records overflow.
func (s *Store) Rotate(ctx context.Context) error { return s.rotate(ctx) }

// Forget is what the upkeep does now and then.
func (s *Store) Forget(ctx context.Context) error {
	return s.forget(ctx, time.Now().Add(-endedRetention))
}
