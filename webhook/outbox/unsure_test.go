package outbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// lostAnswers executes writes and does not say so, while it is set.
type lostAnswers struct {
	Records
	lost *atomic.Bool
}

func (r lostAnswers) Put(ctx context.Context, p store.RecordPut) (uint64, error) {
	version, err := r.Records.Put(ctx, p)
	if r.lost.Load() {
		return 0, lock.Errorf(lock.StoreUnavailable, "the answer was lost")
	}
	return version, err
}

// TestOverWhileUnsure: nothing is left of a delivery that is over before it is known whether its last write
// was executed, and the shard is not lost to that write.
func TestOverWhileUnsure(t *testing.T) {
	for name, kept := range map[string]bool{"that was not kept": false, "that was kept before": true} {
		t.Run(name, func(t *testing.T) {
			m := newMissing(t)
			var lost atomic.Bool
			m.Records = lostAnswers{m.Records, &lost}
			if kept {
				m.misses(15, 20)
				m.takes()
			}
			lost.Store(true)
			d := m.misses(10, 30)
			m.takes()
			lost.Store(false)
			m.end(d)
			m.takes()
			if _, err := m.Records.Get(t.Context(), m.key(d)); !errors.Is(err, lock.NotFound) || len(m.target.leaving) > 0 {
				t.Errorf("it is left: %v", err)
			}
		})
	}
}

// TestErasedByAnother is of a record that another one has written: it stays, and so does what it tells.
func TestErasedByAnother(t *testing.T) {
	m := newMissing(t)
	d := m.misses(10, 20)
	m.takes()
	if _, err := m.Records.Put(t.Context(), store.RecordPut{RecordKey: m.key(d), Value: []byte(`{"id":"1-1_9-9","fence":7,"write":90}`), Version: d.version}); err != nil {
		t.Fatal(err)
	}
	lost := false
	m.lose = func() { lost = true }
	m.end(d)
	m.takes()
	if _, err := m.Records.Get(t.Context(), m.key(d)); !lost || err != nil {
		t.Errorf("the shard is lost: %v, and of the other one's record: %v", lost, err)
	}
}
