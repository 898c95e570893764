package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// BenchmarkCycle joins and removes an entry of a free lock, from clients at once, in an embedded
// store that a feed follows. cpu-ns/op is processor time of the whole process.
func BenchmarkCycle(b *testing.B) {
	for _, clients := range []int{1, 128} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) { benchCycles(b, clients) })
	}
}

func benchCycles(b *testing.B, clients int) {
	conn, err := etcd.StartEmbedded(b.Context(), etcd.EmbeddedConfig{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	var batches, operations atomic.Int64
	s, err := etcd.Open(b.Context(), conn, etcd.Config{Observer: store.Observer{
		Batch:     func(int) { batches.Add(1) },
		Operation: func(string, time.Duration, error) { operations.Add(1) },
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(b.Context())
	var following sync.WaitGroup
	following.Go(func() { s.Watch(ctx, silent{}) })
	defer func() { stop(); following.Wait() }()
	cycle := func(client, n int) {
		e := &lock.Entry{
			ID: lock.ID(fmt.Sprintf("%04d%022d", client, n)), Tenant: "acme", Holder: "worker-1",
			TTL: 30 * time.Second, EnqueuedAt: time.Now(),
			Claims: []lock.Claim{{Name: fmt.Sprintf("orders:%d", client), Mode: lock.Exclusive}},
		}
		placed, _, err := s.Enqueue(ctx, e)
		if err == nil {
			err = s.Remove(ctx, placed, lock.Released)
		}
		if err != nil {
			b.Error(err)
		}
	}
	run := func(from, n int) {
		var next atomic.Int64
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					cycle(c, from+int(i))
				}
			})
		}
		all.Wait()
	}
	run(0, 4*clients)
	batches.Store(0)
	operations.Store(0)
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime()
	run(10*clients, b.N)
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(batches.Load())/float64(b.N), "txns/op")
	b.ReportMetric(float64(operations.Load())/float64(b.N), "calls/op")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
