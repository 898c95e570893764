package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/store"
)

// Watch implements store.RecordStore.
func (r *RecordStore) Watch(ctx context.Context, kind string, changed func()) {
	if (&store.RecordQuery{Kind: kind}).Check() != nil {
		<-ctx.Done() // there are none, and never will be
		return
	}
	watch := func(ctx context.Context) error { return r.watchOnce(ctx, kind, changed) }
	store.Restart(ctx, watch, func(err error) {
		r.store.log.Warn("a watch of small records is interrupted and starts over", "kind", kind, "error", err)
	})
}

// watchOnce says that there were changes, until something is wrong.
func (r *RecordStore) watchOnce(ctx context.Context, kind string, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, err := r.store.newestOnce(ctx)
	if err != nil {
		return err
	}
	w := r.store.conn.watch(ctx, r.kindPrefix(kind), at+1)
	changed() // what came before the watch
	check := time.NewTicker(feedCheck)
	defer check.Stop()
	guard := recordsGuard{store: r.store, at: at, ask: w.ask}
	for {
		select {
		case m, ok := <-w.messages:
			if !ok {
				return errors.Join(ctx.Err(), errFeedEnded)
			}
			if m.err != nil {
				return m.err
			}
			guard.at = max(guard.at, m.revision)
			if len(m.events) > 0 {
				changed()
			}
		case <-check.C:
			if err := guard.check(ctx); err != nil {
				return err
			}
		}
	}
}

// recordsGuard finds out that a watch which looks alive is not: it holds its position
// against a linearizable read.
type recordsGuard struct {
	store *Store
	at    int64 // the revision that the watch has reached
	goal  int64 // one of the store's that it has yet to reach; 0 none
	since time.Time
	ask   func()
}

func (g *recordsGuard) check(ctx context.Context) error {
	if g.at < g.goal {
		if time.Since(g.since) > feedTimeout {
			return fmt.Errorf("%w, at revision %d of %d", errFeedBehind, g.at, g.goal)
		}
		g.ask()
		return nil
	}
	goal, err := g.store.newestOnce(ctx)
	if err != nil {
		return err
	}
	if g.goal, g.since = goal, time.Now(); g.at < goal {
		g.ask()
	}
	if goal < g.at {
		return errWentBack // nothing would come until it is there again
	}
	return nil
}
