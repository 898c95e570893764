package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/store/engine"
)

const (
	// feedCheck is how often a silent watch is compared with the store, and feedTimeout how long it
	// may lag before it restarts. etcd does not bound the delay of a watch, so this is the bound.
	feedCheck   = time.Second
	feedTimeout = 2 * time.Second
)

var (
	errFeedBehind = errors.New("the watch stays behind the store")
	errWentBack   = errors.New("the store is behind what it has told")
)

// guard detects a watch that only looks alive: it compares the watch's position with a
// linearizable read.
type guard struct {
	keys    *keyspace
	at      int64 // the revision that the watch has reached
	ask     func()
	goal    int64 // a revision of the store that the watch has yet to reach; or 0
	goalSet time.Time

	lags    func(time.Duration)  // receives how long the watch has not reached the goal
	reached func(time.Time)      // receives the time of the goal that the watch has reached
	limit   func() time.Duration // returns how long the watch may lag
}

func newGuard(ks *keyspace, at int64, ask func()) *guard {
	return &guard{
		keys: ks, at: at, ask: ask, lags: func(time.Duration) {}, reached: func(time.Time) {},
		limit: func() time.Duration { return feedTimeout },
	}
}

// saw records a revision from the watch. If the store turns out to be behind it, the store has
// lost its past.
func (g *guard) saw(revision int64) {
	g.keys.trust.Saw(revision)
	g.at = max(g.at, revision)
}

func (g *guard) check(ctx context.Context) error {
	if g.at < g.goal {
		late := time.Since(g.goalSet)
		g.lags(late)
		if late > g.limit() {
			return fmt.Errorf("%w, at revision %d of %d", errFeedBehind, g.at, g.goal)
		}
		g.ask()
		return nil
	}
	g.lags(0)
	g.reached(g.goalSet)
	goal, err := g.keys.newestOnce(ctx)
	if err != nil {
		return err
	}
	if goal < g.at {
		return errWentBack // no event would come until the store reaches it again
	}
	g.goal, g.goalSet = goal, time.Now()
	if g.at < goal {
		g.ask()
	}
	return nil
}

// newestOnce does not retry: a feed whose store cannot be read is not current.
func (ks *keyspace) newestOnce(ctx context.Context) (int64, error) {
	resp, err := ks.tryRead(
		ctx, "newest", &pb.RangeRequest{Key: []byte(ks.prefix + engine.MetaKey().Name), CountOnly: true},
	)
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}
