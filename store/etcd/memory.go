package etcd

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// memoryTTL is how long the store keeps reasons at least. The contract requires 10 minutes. A
	// change of leader restarts every lease.
	memoryTTL = 12 * time.Minute

	// memorySpan bounds how long new records share one lease, and memoryRecords how many: etcd
	// deletes them all at once.
	memorySpan    = 30 * time.Second
	memoryRecords = 1000
)

// memory provides the leases of records of ends. They are never renewed, so the store's own time
// decides when a record is dropped, and no replica's clock.
type memory struct {
	grant func(ctx context.Context, id int64, ttl time.Duration) error

	turn    chan struct{} // guards the fields below
	id      int64         // 0 if there is none
	granted time.Time
	records int
}

func newMemory(grant func(ctx context.Context, id int64, ttl time.Duration) error) *memory {
	return &memory{grant: grant, turn: make(chan struct{}, 1)}
}

// lease returns a lease for n more records.
func (m *memory) lease(ctx context.Context, n int) (int64, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if m.id == 0 || time.Since(m.granted) > memorySpan || m.records+n > memoryRecords {
		id, now := rand.Int64()|1, time.Now()
		if err := m.grant(ctx, id, memoryTTL); err != nil {
			return 0, err
		}
		m.id, m.granted, m.records = id, now, 0
	}
	m.records += n
	return m.id, nil
}

// drop discards a lease that the store does not have.
func (m *memory) drop(id int64) {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	if m.id == id {
		m.id = 0
	}
}
