package storetest

import "github.com/fencepost/fencepost/lock"

func fenceCases() []testCase {
	return []testCase{
		{name: "fence/grows from holder to holder", run: fenceGrows},
		{name: "fence/grows over a reopening", run: fenceReopened},
		{name: "fence/grows over a compaction", run: fenceCompacted, needs: compact},
	}
}

// fenceGrows empties the queue between holders, so that only the store's own
// memory can make the next number greater.
func fenceGrows(t *trial) {
	last := uint64(0)
	for i := range 50 {
		last = t.nextFence(i, last)
	}
}

func fenceReopened(t *trial) {
	last := t.nextFence(0, 0)
	t.A = t.Reopen(t.T)
	t.nextFence(0, last)
}

func fenceCompacted(t *trial) {
	last := uint64(0)
	for i := range 4 {
		last = t.nextFence(i, last)
		t.Compact(t.T)
	}
	t.nextFence(0, last)
}

// nextFence takes and releases the lock and returns the fence, which must be
// above the last one and above all that the store has ever given out before.
func (t *trial) nextFence(i int, last uint64) uint64 {
	t.Helper()
	newest, err := t.client(i + 1).Newest(t.ctx)
	if err != nil {
		t.Fatalf("Newest: %v", err)
	}
	e := t.enqueue(t.client(i), t.draft("a"))
	if e.Number <= last || e.Number <= newest {
		t.Fatalf("fence %d after %d, the newest number was %d", e.Number, last, newest)
	}
	t.remove(t.client(i+1), e, lock.Released)
	return e.Number
}
