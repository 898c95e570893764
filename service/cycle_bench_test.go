package service_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
)

// instantStore writes into its follower's view at once, so that a benchmark measures the service.
type instantStore struct {
	store.Store
	following chan struct{}

	mu     sync.Mutex
	view   store.Watcher
	number uint64
}

func (s *instantStore) Watch(ctx context.Context, to store.Watcher) {
	to.Reset(store.Snapshot{Number: 100})
	s.view, s.number = to, 100
	close(s.following)
	<-ctx.Done()
}

func (*instantStore) Refusal() error { return nil }

func (*instantStore) Renew(context.Context, *lock.Entry) error { return nil }

func (s *instantStore) Enqueue(
	_ context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	one := *e
	one.Number = s.number
	s.view.Apply(s.number, []store.Change{{Number: s.number, Joined: &one}})
	return &one, true, nil
}

func (s *instantStore) Remove(
	_ context.Context, e *lock.Entry, why lock.Reason, _ ...*lock.Entry,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	s.view.Apply(s.number, []store.Change{{Number: s.number, Left: e.ID, Reason: why}})
	return nil
}

func instantService(b *testing.B) *service.Service {
	b.Helper()
	at := &instantStore{following: make(chan struct{})}
	s := service.New(service.Config{Store: at, TokenKey: tokenKey(), MinTTL: minTTL})
	b.Cleanup(s.Close)
	<-at.following
	return s
}

// BenchmarkCycle measures an acquire and a release of a free lock, without the store.
func BenchmarkCycle(b *testing.B) {
	s := instantService(b)
	names := make([]string, 1000)
	for i := range names {
		names[i] = "orders:" + strconv.Itoa(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		g, err := s.Acquire(b.Context(), want(names[i%1000], 10*time.Second))
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Entries.Release(b.Context(), by(g)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRenew measures a renewal, without the store.
func BenchmarkRenew(b *testing.B) {
	s := instantService(b)
	g, err := s.Acquire(b.Context(), want("orders:1", 0))
	if err != nil {
		b.Fatal(err)
	}
	req := by(g)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Entries.Renew(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkContended measures the cycles of 32 clients that queue for one lock.
func BenchmarkContended(b *testing.B) {
	s := instantService(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			for left.Add(-1) >= 0 {
				g, err := s.Acquire(b.Context(), want("one", 10*time.Second))
				if err == nil {
					err = s.Entries.Release(b.Context(), by(g))
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	clients.Wait()
}
