package store_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// slowRecords answers a list after a while, with an error if it fails.
type slowRecords struct {
	mu    sync.Mutex
	takes time.Duration
	fails error
}

func (s *slowRecords) set(takes time.Duration, fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.fails = takes, fails
}

func (s *slowRecords) List(ctx context.Context, _ store.RecordQuery) (store.RecordPage, error) {
	s.mu.Lock()
	takes, fails := s.takes, s.fails
	s.mu.Unlock()
	if err := store.Pause(ctx, takes); err != nil {
		return store.RecordPage{}, err
	}
	return store.RecordPage{Records: []store.Record{{Version: uint64(time.Now().Unix())}}}, fails
}

// Watch reports a change all the time.
func (*slowRecords) Watch(ctx context.Context, _ string, changed func()) {
	for changed(); store.Pause(ctx, 10*time.Millisecond) == nil; {
		changed()
	}
}

// follow starts a follower. last returns when it last took records.
func follow(t *testing.T, records *slowRecords) (last func() time.Time) {
	t.Helper()
	var mu sync.Mutex
	var took time.Time
	f := store.RecordFollower[uint64]{
		Records: records, Log: slog.New(slog.DiscardHandler), Kind: "thing", Most: 1,
		Parse: func(r store.Record) (uint64, error) { return r.Version, nil },
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		f.Run(ctx, func(map[store.RecordKey]uint64) {
			mu.Lock()
			defer mu.Unlock()
			took = time.Now()
		})
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return took
	}
}

// TestFollowerReadsSoonAfterAnOutage: a failed read took as long as its deadline, which says
// nothing of what a read costs. So a follower that starts in an outage is not deaf after it.
func TestFollowerReadsSoonAfterAnOutage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		records := &slowRecords{takes: 4 * time.Second, fails: errors.New("no answer")}
		last := follow(t, records)
		<-time.After(time.Minute)
		records.set(0, nil)
		<-time.After(5500 * time.Millisecond) // one more attempt fails, and then a pause
		if last().IsZero() {
			t.Error("it has read nothing 5.5 s after the outage")
		}
	})
}

// TestFollowerOfASlowStore: reads that take 4 s do not make it pause for 40 s.
func TestFollowerOfASlowStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		last := follow(t, &slowRecords{takes: 4 * time.Second})
		<-time.After(time.Minute)
		if age := time.Since(last()); age > 7*time.Second {
			t.Errorf("its last read was %v ago", age)
		}
	})
}
