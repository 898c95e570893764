package fencehttp

import (
	"context"
	"sync"
)

// Memory is a [Store] for tests, and for a single process whose data does not outlive it. It loses
// all fences at a restart, knows none of other processes, and grows with the number of resources.
type Memory struct {
	mu     sync.Mutex
	fences map[string]uint64
}

// Raise implements [Store].
func (m *Memory) Raise(_ context.Context, resource string, fence uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fences == nil {
		m.fences = map[string]uint64{}
	}
	m.fences[resource] = max(m.fences[resource], fence)
	return m.fences[resource], nil
}
