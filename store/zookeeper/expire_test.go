package zookeeper

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestFewEndAtOnce: of leases that end together few entries are removed at a time, so that what
// clients write does not wait behind thousands.
func TestFewEndAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStore(Config{})
		answer := make(chan struct{})
		var sent atomic.Int64
		s.commits = &committer{Committer: batch.NewCommitter(batch.Limits{Ops: maxBatch, Bytes: maxBatchSize, InFlight: 1, Most: mostCommits},
			func(ws []*write) [][]*write {
				sent.Add(int64(len(ws)))
				<-answer
				for _, w := range ws {
					w.Settle(outcome{}, nil)
				}
				return nil
			}, nil)}
		x := newExpirer(s.leases, nil, &remover{reader: s.reader, commits: s.commits, leases: s.leases, feed: s.feed})
		ctx, stop := context.WithCancel(t.Context())
		var ending sync.WaitGroup
		const all = 5 * parallelEnds
		for i := range all {
			e := &lock.Entry{ID: lock.ID(fmt.Sprint("e", i)), Tenant: "acme", TTL: time.Second, Claims: []lock.Claim{{Name: fmt.Sprint("a", i), Mode: lock.Exclusive}}}
			ending.Go(func() { x.expire(ctx, &lease{entry: e}, 1) })
		}
		synctest.Wait()
		if n := int(sent.Load()) + s.commits.Pending().Writes; n != parallelEnds {
			t.Errorf("%d entries are being removed, want %d", n, parallelEnds)
		}
		stop() // those that wait for a place give up
		synctest.Wait()
		close(answer)
		ending.Wait()
	})
}
