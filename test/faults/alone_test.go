package faults_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/test/faults/drive"
)

// alone does to etcd itself what TestF9ExpireTogether does to the servers before it, and returns
// how many times as long others' writes take meanwhile, by their p99: no server of ours can make
// that better. On ZooKeeper, where nothing ends without the servers, it is 1.
func (s *stand) alone(size int) (slower float64) {
	s.t.Helper()
	cluster, ok := s.cluster.(drive.Etcd)
	if !ok {
		return 1
	}
	client, err := cluster.Client()
	s.must(err)
	defer client.Close()
	end := time.Now().Add(30 * time.Second)
	s.must(leased(s.ctx, client, size, end))
	load, stop := context.WithCancel(s.ctx)
	defer stop()
	p := &probe{}
	p.phase.Store(phaseBefore)
	var probing sync.WaitGroup
	for n := range probes {
		probing.Go(func() { s.probeAlone(load, client, fmt.Sprint("/alone-other/", n), p) })
	}
	pause(s.ctx, time.Until(end)-togetherIn/2)
	p.phase.Store(phaseExpiring)
	for left := int64(1); left > 0; pause(s.ctx, 100*time.Millisecond) {
		all, err := client.Get(s.ctx, "/alone/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		s.must(err)
		left = all.Count
	}
	stop()
	probing.Wait()
	before, n := p.p99(phaseBefore)
	during, m := p.p99(phaseExpiring)
	s.t.Logf(
		"etcd alone: gone %v after their leases, p99 of other writes: %v of %d before, %v of %d meanwhile",
		time.Since(end).Round(time.Millisecond),
		before.Round(10*time.Microsecond),
		n,
		during.Round(10*time.Microsecond),
		m,
	)
	return max(1, float64(during)/float64(max(before, 1)))
}

// leased writes keys whose leases, one for each, end at one moment.
func leased(ctx context.Context, client *clientv3.Client, size int, end time.Time) error {
	writing, ctx := errgroup.WithContext(ctx)
	writing.SetLimit(32)
	for i := range size {
		writing.Go(
			func() error { return putLeased(ctx, client, fmt.Sprint("/alone/", i), time.Until(end)) },
		)
	}
	return writing.Wait()
}

// probeAlone writes a key with a lease of its own, and deletes it, one after the other.
func (s *stand) probeAlone(load context.Context, client *clientv3.Client, key string, p *probe) {
	for load.Err() == nil {
		phase, start := p.phase.Load(), time.Now()
		err := putLeased(s.ctx, client, key, time.Minute)
		p.add(phase, time.Since(start))
		if err == nil {
			_, err = client.Delete(s.ctx, key)
		}
		if err != nil {
			s.t.Errorf("etcd alone: %v", err)
			return
		}
		pause(load, 5*time.Millisecond)
	}
}

func putLeased(ctx context.Context, client *clientv3.Client, key string, ttl time.Duration) error {
	lease, err := client.Grant(ctx, int64(ttl.Round(time.Second)/time.Second))
	if err == nil {
		_, err = client.Put(ctx, key, "x", clientv3.WithLease(lease.ID))
	}
	return err
}
