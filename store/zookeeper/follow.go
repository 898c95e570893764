package zookeeper

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

// follower is one Watch.
type follower struct {
	mu    sync.Mutex
	f     store.Watcher
	over  bool
	view  view
	begun chan struct{} // there is another view
}

// view is a follower's view; the ends from before it follow later.
type view struct {
	count int   // views and losses before it
	lost  bool  // it is over, and there is no other yet
	epoch int32 // of the log in use
}

// begin gives the follower a view of the present. The caller holds the feed's mu.
func (f *follower) begin(from *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.view = view{count: f.view.count + 1, epoch: from.epoch}
	select {
	case f.begun <- struct{}{}:
	default: // it will look anyway
	}
	newest := from.reader.number(from.newest)
	entries := (&snapshot{entries: from.entries.byKey}).sorted()
	f.f.Reset(store.Snapshot{Number: from.number, Newest: newest, Entries: entries})
}

func (f *follower) lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.view.count++
	f.view.lost = true
	f.f.Lost(err)
}

// apply reports an update. The caller holds the feed's mu.
func (f *follower) apply(one update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.f.Apply(one.upTo, one.changes)
	}
}

// viewed returns the present view.
func (f *follower) viewed() view {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// close ends the follower.
func (f *follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// errAnotherView ends the recall for an older view.
var errAnotherView = errors.New("the follower has another view")

// recall reports some ends from before the follower's view.
func (f *follower) recall(v view, ends []end, floor uint64, complete bool) error {
	told := make([]store.Ended, 0, len(ends))
	for _, e := range ends {
		told = append(told, e.Ended(floor))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.view != v || v.lost {
		return errAnotherView
	}
	f.f.Recall(told, complete)
	return nil
}

// Watch implements store.Store. The first view is no older than the call.
func (s *Store) Watch(ctx context.Context, to store.Watcher) {
	f := &follower{f: to, begun: make(chan struct{}, 1)}
	for s.catchUp(ctx) != nil {
		if store.Pause(ctx, guardInterval/4) != nil {
			return
		}
	}
	s.feed.add(f)
	for ctx.Err() == nil {
		select {
		case <-f.begun:
			s.teller.recall(ctx, f, f.viewed())
		case <-ctx.Done():
		}
	}
	f.close()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.followers, f)
}

// add gives the follower a view, now or when there is one.
func (f *feed) add(to *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers[to] = struct{}{}
	if f.current {
		to.begin(f)
	}
}

// teller reports the ends from before their views to followers.
type teller struct {
	*reader
	chores  *connector // separate, so that the feed does not wait for it
	archive *archive
}

// recall reports the ends from before a follower's view, unless the follower gets another view.
func (t *teller) recall(ctx context.Context, f *follower, v view) {
	for {
		err := t.recallOn(ctx, f, v)
		switch {
		case err == nil, errors.Is(err, errAnotherView), ctx.Err() != nil, errors.Is(err, errClosed):
			return
		case answered(err):
			t.log.Warn("the reasons of ends cannot be read; it is tried again", "error", err)
		}
		if store.Pause(ctx, longestPause) != nil {
			return
		}
	}
}

// recallOn reads the ends, a part at a time: first from the records that are still in the logs,
// then from the nodes with the ends of older records. The follower receives ends that are moved
// meanwhile twice. recallOn reads no record that the feed has not applied yet.
func (t *teller) recallOn(ctx context.Context, f *follower, v view) error {
	l, err := t.chores.get(ctx)
	if err != nil {
		return err
	}
	stat, err := t.barrierOn(ctx, l)
	if err != nil {
		return err
	}
	if !t.archive.feed.reaches(ctx, stat.Mzxid) {
		return errBehind
	}
	old, err := t.oldLogs(ctx, l, v.epoch)
	if err != nil {
		return err
	}
	for _, epoch := range append(old, v.epoch) {
		end := int32(math.MaxInt32)
		if epoch == v.epoch {
			end = created(stat)
		}
		err := t.eachPart(ctx, l, epoch, end, func(records []folded) error {
			return f.recall(v, endsOf(records), t.trust.Floor(), false)
		})
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // a log may be retired meanwhile
			return err
		}
	}
	if err := t.archive.recallMoved(ctx, l, f, v); err != nil {
		return err
	}
	return f.recall(v, nil, 0, true)
}
