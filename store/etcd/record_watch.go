package etcd

import (
	"context"
	"errors"
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
		r.store.log.Warn(
			"a watch of small records is interrupted and starts over", "kind", kind, "error", err,
		)
	})
}

// watchOnce reports changes until something fails.
func (r *RecordStore) watchOnce(ctx context.Context, kind string, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, err := r.store.newestOnce(ctx)
	if err != nil {
		return err
	}
	prefix := r.kindPrefix(kind)
	w := r.store.conn.watch(ctx, prefix, string(prefixEnd(prefix)), at+1)
	changed() // for changes before the watch
	check := time.NewTicker(feedCheck)
	defer check.Stop()
	guard := newGuard(r.store.keyspace, at, w.ask)
	for {
		select {
		case m, ok := <-w.messages:
			if !ok {
				return errors.Join(ctx.Err(), errFeedEnded)
			}
			if m.err != nil {
				return m.err
			}
			guard.saw(m.revision)
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
