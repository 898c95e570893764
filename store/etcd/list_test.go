package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// seen is a follower that keeps the reported ends.
type seen struct {
	mu       sync.Mutex
	resets   int
	entries  int
	reasons  map[lock.ID]lock.Reason
	pages    int
	complete bool
}

func (f *seen) Reset(s store.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets, f.entries, f.reasons, f.pages, f.complete = f.resets+1, len(
		s.Entries,
	), map[lock.ID]lock.Reason{}, 0, false
}

func (f *seen) Recall(ends []store.Ended, complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range ends {
		f.reasons[e.ID] = e.Reason
	}
	f.pages++
	f.complete = complete
}

func (f *seen) Apply(_ uint64, changes []store.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		if c.Joined == nil {
			f.reasons[c.Left] = c.Reason
		}
	}
}

func (f *seen) Lost(error) {}

// TestListUnderLoad: a store keeps far more ends than fit on one page, is compacted all the time,
// and locks are taken and released. A follower still begins, and receives every end.
func TestListUnderLoad(t *testing.T) {
	t.Parallel()
	const prefix, records, each = "/list/", 12_000, 10
	cluster := startCluster(t, 1)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	s := dial(t, cluster.Endpoints(), prefix)
	held := mustEnqueue(t, s, newEntry("held", "held"))
	var puts []clientv3.Op
	for i := range records {
		value := "["
		for j := range each {
			value += fmt.Sprintf(
				`{"id":"old-%d-%d","reason":"released","at_ms":%d},`, i, j, held.EnqueuedAt.UnixMilli(),
			)
		}
		value = value[:len(value)-1] + "]"
		key := fmt.Sprintf("%sended/%011d/%016x", prefix, held.EnqueuedAt.Unix()/10, i)
		if puts = append(puts, clientv3.OpPut(key, value)); len(puts) < 100 {
			continue
		}
		if _, err := client.Txn(t.Context()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
		puts = nil
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	load.Go(func() { compactOnAndOn(ctx, t, client) })
	var released []lock.ID
	load.Go(func() { released = takeOnAndOn(ctx, t, s) })

	f := &seen{}
	follower := dial(t, cluster.Endpoints(), prefix)
	follows, unfollow := context.WithCancel(t.Context())
	var following sync.WaitGroup
	defer following.Wait()
	defer unfollow()
	following.Go(func() { follower.Watch(follows, f) })
	eventually(t, "the follower knows all old ends", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.complete
	})
	stop()
	load.Wait()
	eventually(t, "the follower knows the last end", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(released) == 0 || f.reasons[released[len(released)-1]] != ""
	})
	unfollow()
	following.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.entries == 0 || f.pages < 3 {
		t.Errorf("%d views, the last with %d entries, and %d pages of ends", f.resets, f.entries, f.pages)
	}
	for i := range records {
		for j := range each {
			if id := lock.ID(fmt.Sprintf("old-%d-%d", i, j)); f.reasons[id] != lock.Released {
				t.Fatalf("the end of %s is known as %q", id, f.reasons[id])
			}
		}
	}
	if len(released) == 0 {
		t.Error("there was no load")
	}
	for _, id := range released {
		if why := f.reasons[id]; why != lock.Released {
			t.Errorf("the end of %s, which came meanwhile, is known as %q", id, why)
		}
	}
}

// compactedBehind is how old is what compactions leave: a watch begins at what was listed, and what
// is younger than it takes to ask for one cannot be compacted all the time, or no feed would ever
// begin.
const compactedBehind = 100 * time.Millisecond

func compactOnAndOn(ctx context.Context, t *testing.T, client *clientv3.Client) {
	type moment struct {
		at       time.Time
		revision int64
	}
	var lately []moment
	for ctx.Err() == nil {
		newest, err := client.Get(ctx, "nothing")
		if err == nil {
			lately = append(lately, moment{time.Now(), newest.Header.Revision})
			for len(lately) > 1 && time.Since(lately[1].at) > compactedBehind {
				lately = lately[1:]
			}
			if time.Since(lately[0].at) > compactedBehind {
				_, err = client.Compact(ctx, lately[0].revision)
			}
		}
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) && ctx.Err() == nil {
			t.Errorf("compact: %v", err)
		}
	}
}

func takeOnAndOn(ctx context.Context, t *testing.T, s *etcd.Store) (released []lock.ID) {
	for i := 0; ctx.Err() == nil; i++ {
		e, _, err := s.Enqueue(t.Context(), newEntry("busy", fmt.Sprint("new-", i)))
		if err == nil {
			err = s.Remove(t.Context(), e, lock.Released)
		}
		if err != nil {
			t.Errorf("under load: %v", err)
			return released
		}
		released = append(released, e.ID)
	}
	return released
}
