package outbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// busyRecords lists nothing for a while.
type busyRecords struct {
	Records
	until time.Time
}

func (r busyRecords) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if time.Now().Before(r.until) {
		return store.RecordPage{}, lock.Errorf(lock.StoreUnavailable, "it does not answer")
	}
	return r.Records.List(ctx, q)
}

// TestSinceOfABusyStore: a replica that starts when the store does not answer for a moment learns all the same
// from where on webhooks are to be told: otherwise it would know nothing of what happened before, and tell
// that as missed.
func TestSinceOfABusyStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := newMissing(t)
		if _, err := m.putCursor(t.Context(), at(42), m.stamp()); err != nil {
			t.Fatal(err)
		}
		for busy, want := range map[time.Duration]uint64{0: 41, 3 * time.Second: 41, time.Minute: 0} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			since, err := Since(ctx, busyRecords{m.Records, time.Now().Add(busy)})
			cancel()
			if since != want || errors.Is(err, lock.StoreUnavailable) != (want == 0) {
				t.Errorf("busy for %v: %d, %v, want %d", busy, since, err, want)
			}
		}
	})
}
