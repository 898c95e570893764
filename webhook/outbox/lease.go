package outbox

import (
	"sync/atomic"
	"time"
)

// lease is until when a shard's lock is surely this replica's: by its own clock, from when it sent the
// acquire or renewal that was answered last. An owner that was cut off, or stood still, reads on only then, and
// writes only over what it wrote or read before: another one may have the shard, and would find what is
// new there only when it writes the same, or be followed by one that takes it for what is owed.
type lease struct{ until atomic.Pointer[time.Time] }

// leaseMargin is for clocks that run at different rates, and for what was sent before the lease's end and
// arrives after it.
const leaseMargin = time.Second

func (l *lease) renewed(sent time.Time) {
	until := sent.Add(shardTTL - leaseMargin)
	l.until.Store(&until)
}

// holds reports whether nobody else can have the lock now. One that nobody keeps always holds.
func (l *lease) holds() bool {
	until := l.until.Load()
	return until == nil || time.Now().Before(*until)
}
