package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestExpiryInAGap: entries with a key expire, or are released, while the only feed there
// is is interrupted. Their keys are used up all the same, for a replica too that has never
// seen them, and each for its own reason.
func TestExpiryInAGap(t *testing.T) {
	var cut atomic.Bool
	s, _ := testStore(t, EmbeddedConfig{}, func(c *Conn) {
		begin := c.watch
		c.watch = func(ctx context.Context, prefix string, from int64) watch {
			return cuttable(ctx, begin, prefix, from, &cut)
		}
		c.Interfere(func(_ context.Context, r *pb.TxnRequest, do func() (*pb.TxnResponse, error)) (*pb.TxnResponse, error) {
			if cut.Load() && len(r.Success) == 2 && r.Success[1].GetRequestRange() != nil {
				return nil, context.DeadlineExceeded // it is the first page of a list
			}
			return do()
		})
	})
	f := &ends{left: make(chan store.Change, 10)}
	s.tasks.Go(func() { s.Follow(s.closing, f) })
	soon(t, "the feed is up", f.isUp)
	expires, released := reusable("expires", true), reusable("released", true)
	expires.TTL = MinTTL
	if err := s.Remove(t.Context(), s.mustEnqueue(t, expires), lock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * time.Millisecond) // times are told in whole ones
	expires.EnqueuedAt = time.Now()
	s.mustEnqueue(t, expires) // as a try that has found the lock held, and comes again
	gone := s.mustEnqueue(t, released)
	soon(t, "the feed has both", func() bool { return s.feedAt.Load() >= s.revision(gone.Number) })
	cut.Store(true)
	if err := s.Remove(t.Context(), gone, lock.Released); err != nil {
		t.Fatal(err)
	}
	soon(t, "the entry expires", func() bool {
		found, err := s.find(t.Context(), expires)
		return err == nil && found == nil
	})
	cut.Store(false)
	other, err := Open(t.Context(), s.conn, Config{}) // it has never seen them
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for e, want := range map[*lock.Entry]lock.Reason{expires: lock.Expired, released: lock.Released} {
		soon(t, "the key is used up", func() bool {
			m, err := other.readMark(t.Context(), e)
			return err == nil && m != nil && m.Reason != ""
		})
		var why *lock.Error
		if _, _, err := other.Enqueue(t.Context(), e); !errors.As(err, &why) || why.Code != lock.Lost || why.Reason != want {
			t.Errorf("%s again = %v, want %s", e.ID, err, want)
		}
	}
}

// cuttable is a watch that breaks when it is cut.
func cuttable(ctx context.Context, begin watchFunc, prefix string, from int64, cut *atomic.Bool) watch {
	w := begin(ctx, prefix, from)
	told := make(chan watchMessage)
	go func() {
		defer close(told)
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for !cut.Load() {
			select {
			case m, ok := <-w.messages:
				if !ok || !send(ctx, told, m) {
					return
				}
			case <-look.C:
			}
		}
		send(ctx, told, watchMessage{err: errFeedEnded})
	}()
	return watch{messages: told, ask: w.ask}
}
