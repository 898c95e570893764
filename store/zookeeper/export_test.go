package zookeeper

import (
	"context"

	"github.com/fencepost/fencepost/lock"
)

// ReadQueue is what Queue does when the feed is late.
func (s *Store) ReadQueue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	return s.readQueue(ctx, r)
}
