package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// feedCheck is how often a silent watch is held against the store, and
	// feedTimeout how long it may stay behind before it is started over. Watch
	// delay has no bound by contract, so this is the bound.
	feedCheck   = time.Second
	feedTimeout = 2 * time.Second
)

var (
	errFeedBehind = errors.New("the watch stays behind the store")
	errWentBack   = errors.New("the store is behind what it has told")
)

// guard finds out that a watch which looks alive is not: it holds its position
// against a linearizable read.
type guard struct {
	keys    *keyspace
	at      int64 // the revision that the watch has reached
	ask     func()
	goal    int64 // a revision of the store that the watch has yet to reach; 0 none
	goalSet time.Time

	lags    func(time.Duration)  // gets for how long the goal has not been reached
	reached func(time.Time)      // gets since when the goal that was reached is one
	limit   func() time.Duration // returns for how long the watch may stay behind
}

func newGuard(ks *keyspace, at int64, ask func()) *guard {
	return &guard{
		keys: ks, at: at, ask: ask, lags: func(time.Duration) {}, reached: func(time.Time) {},
		limit: func() time.Duration { return feedTimeout },
	}
}

// saw takes note of a revision that the watch has told of. If the store is found to be behind
// that, it has lost its past.
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
		return errWentBack // nothing would come until it is there again
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
		ctx, ks.kv, "newest", &pb.RangeRequest{Key: []byte(ks.prefix + metaCluster), CountOnly: true},
	)
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}
