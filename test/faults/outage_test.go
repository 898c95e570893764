package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

// TestOutageIsTold kills both replicas under load. Restarted replicas resume from etcd's history:
// webhooks report every grant and release, and nothing is missed. If the history is gone by then,
// and on ZooKeeper, they report that something is missed.
func TestOutageIsTold(t *testing.T) {
	s := newStand(t, 15*time.Minute, toLoopback...)
	names := []string{"a", "b"}
	r := receive(t, names...)
	var ids []string
	for _, name := range names {
		ids = append(ids, s.subscribe(r.URL+"/"+name))
	}
	s.settleWebhooks(ids)
	rounds := []bool{false, true}
	if onZooKeeper() {
		rounds = rounds[1:]
	}
	for round, forgets := range rounds {
		known := r.acquiredBy(names)
		granted, released := s.killUnderLoad(
			100*round, func() bool { return r.acquiredBy(names) > known+20 },
		)
		if forgets {
			_, err := s.store.Truth(s.ctx) // it is observed until here
			s.must(err)
			s.must(s.cluster.Forget(s.ctx))
		}
		for _, replica := range s.replicas {
			s.must(replica.Restart(s.ctx))
		}
		dues := duesOfClients(granted, released)
		lack := func() int { return r.all(names, dues).lacking }
		for end := time.Now().Add(within(30 * time.Second)); (lack() > 0 || forgets &&
			r.missedBy(names) == 0) && time.Now().Before(end); pause(s.ctx, 50*time.Millisecond) {
		}
		t.Logf(
			"%d grants and %d releases; %d never told; missed: %d times", len(granted), len(released),
			lack(), r.missedBy(names),
		)
		if lack() > 0 {
			t.Errorf("%d were never told", lack())
		}
		if missed := r.missedBy(names); forgets != (missed > 0) {
			t.Errorf(
				"with its history gone: %t, it is said %d times that something is missed", forgets, missed,
			)
		}
	}
	s.readLogs()
}

// killUnderLoad kills all replicas when seen says so, while clients take and release locks, and
// returns the fences that these know of.
func (s *stand) killUnderLoad(from int, seen func() bool) (granted, released []int64) {
	load, stop := context.WithCancel(s.ctx)
	var mu sync.Mutex
	var loading sync.WaitGroup
	for _, c := range s.clients[:4] {
		loading.Go(func() {
			for n := from; load.Err() == nil; n++ {
				h, _ := c.Acquire(s.ctx, drive.Request{
					Lock: fmt.Sprintf("outage:%d:%d", c.Number, n%5), TTL: 5 * time.Second, Replica: n % 2,
				})
				if h == nil {
					continue
				}
				outcome := c.Release(s.ctx, n%2, 1, h)
				mu.Lock()
				granted = append(granted, h.Fence)
				if outcome == history.OK {
					released = append(released, h.Fence)
				}
				mu.Unlock()
				pause(load, 5*time.Millisecond)
			}
		})
	}
	for end := time.Now().Add(within(30 * time.Second)); !seen() && time.Now().Before(end); pause(
		s.ctx, 10*time.Millisecond,
	) {
	}
	for _, replica := range s.replicas {
		s.must(replica.Kill())
	}
	stop()
	loading.Wait()
	return granted, released
}

// settleWebhooks causes an event, and waits until the store records its deliveries. Until then a
// restart delivers everything since the subscriptions were made again, which needs more history.
func (s *stand) settleWebhooks(ids []string) {
	s.t.Helper()
	h, _ := s.clients[0].Acquire(
		s.ctx, drive.Request{Lock: "first", TTL: 5 * time.Second, Replica: 0, Attempts: 3},
	)
	if h == nil {
		s.t.Fatal("the first lock is not granted")
	}
	s.clients[0].Release(s.ctx, 0, 3, h)
	for end := time.Now().Add(within(30 * time.Second)); !s.recorded(ids); pause(
		s.ctx, 100*time.Millisecond,
	) {
		if time.Now().After(end) {
			s.t.Fatal("subscriptions are not told of the first lock")
		}
	}
}

// recorded reports whether each subscription received everything, and the store records that.
func (s *stand) recorded(ids []string) bool {
	for _, id := range ids {
		var list struct{ Deliveries []struct{ State string } }
		status := s.webhook(http.MethodGet, "/webhooks/"+id+"/deliveries?limit=100", nil, &list)
		if status != http.StatusOK || len(list.Deliveries) < 2 {
			return false
		}
		for _, d := range list.Deliveries {
			if d.State != "delivered" {
				return false
			}
		}
	}
	return true
}

// acquiredBy is of how many grants the one knows that knows of fewest.
func (r *receivers) acquiredBy(names []string) int {
	return r.least(names, func(one *told) int { return len(one.acquired) })
}

// missedBy returns the least number of missed-events reports of any receiver.
func (r *receivers) missedBy(names []string) int {
	return r.least(names, func(one *told) int { return len(one.missed) })
}

func (r *receivers) least(names []string, count func(*told) int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make([]int, len(names))
	for i, name := range names {
		counts[i] = count(r.told[name])
	}
	return slices.Min(counts)
}
