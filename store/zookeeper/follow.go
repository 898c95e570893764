package zookeeper

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

// follower is one Watch.
type follower struct {
	mu     sync.Mutex
	f      store.Watcher
	over   bool
	view   view
	told   lastTold           // where it is; no number if it is to begin with what there is
	held   *held              // what it is not told yet; nil if it is told everything as it comes
	behind time.Time          // since when it is to be told of the past, over all views; zero if it has caught up
	stop   context.CancelFunc // ends what is read for its view; nil if nothing is
	begun  chan struct{}      // there is another view
}

// view is one that a follower was given; ends from before it are told later.
type view struct {
	count int   // views and losses before it
	lost  bool  // it is over, and there is no other yet
	epoch int32 // of the log in use
	next  int32 // the first record that is not in it
}

// begin gives the follower a view, once it was told what happened before. The caller holds
// the feed's mu.
func (f *follower) begin(from *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	first, at := f.another(from)
	if f.told.number == 0 {
		f.reset(first, at)
		return
	}
	f.held = &held{first: first, at: at}
	if f.behind.IsZero() {
		f.behind = time.Now()
	}
}

// another notes that there is another view, which it returns. The caller holds mu, and the
// feed's.
func (f *follower) another(from *feed) (store.Snapshot, lastTold) {
	f.end()
	f.view = view{count: f.view.count + 1, epoch: from.epoch, next: from.next}
	select {
	case f.begun <- struct{}{}:
	default: // it will look anyway
	}
	entries := (&snapshot{entries: from.entries.byKey}).sorted()
	return store.Snapshot{Number: from.number, Entries: entries, Notices: from.attachedTo(entries)}, from.told()
}

// end ends what is done for the view. The caller holds mu.
func (f *follower) end() {
	if f.held = nil; f.stop != nil {
		f.stop()
	}
}

func (f *follower) lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.end()
	f.view.count++
	f.view.lost = true
	f.f.Lost(err)
}

// apply tells what happened, or holds it back. If that comes to be too much the follower
// begins with what there is. The caller holds the feed's mu.
func (f *follower) apply(from *feed, one retold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over:
	case f.held == nil:
		f.tell(one)
	case !f.held.add(one):
		from.reader.log.Info("too much happens while what happened before is read, which is so not told", "since", f.told.number)
		f.behind = time.Time{}
		f.reset(f.another(from))
	}
}

// attend returns the view that there is and what is held back for it, and a context that
// ends with the view.
func (f *follower) attend(ctx context.Context) (context.Context, view, *held) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.stop()
	}
	ctx, f.stop = context.WithCancel(ctx)
	return ctx, f.view, f.held
}

// close ends the follower.
func (f *follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.end()
}

// errAnotherView says that the ends before an older view need not be told any more.
var errAnotherView = errors.New("the follower has another view")

// recall tells a part of what was before the view.
func (f *follower) recall(v view, ends []end, floor uint64, complete bool) error {
	told := make([]store.Ended, 0, len(ends))
	for _, e := range ends {
		if e.Reason != store.Noticed { // nothing ended
			told = append(told, e.Ended(floor))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.view != v || v.lost || f.held != nil {
		return errAnotherView
	}
	f.f.Recall(told, complete)
	return nil
}

// Watch implements store.Store. The first view is no older than the call.
func (s *Store) Watch(ctx context.Context, to store.Watcher) {
	f := &follower{f: to, told: lastTold{number: s.resume.Swap(0)}, begun: make(chan struct{}, 1)}
	for s.catchUp(ctx) != nil {
		if store.Pause(ctx, guardInterval/4) != nil {
			return
		}
	}
	s.feed.add(f)
	for ctx.Err() == nil {
		select {
		case <-f.begun:
			viewed, v, h := f.attend(ctx)
			if h != nil {
				s.teller.tellEarlier(viewed, f, h)
			}
			s.teller.recall(viewed, f, v)
		case <-ctx.Done():
		}
	}
	f.close()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.followers, f)
}

// add begins with a view, now or when there is one.
func (f *feed) add(to *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers[to] = struct{}{}
	if f.current {
		to.begin(f)
	}
}

// recall tells the ends from before the follower's view, unless it gets another one.
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

// recallOn reads what is remembered of ends, a part at a time: in the records that
// the logs still have, and then in the nodes to which those of older ones were moved.
// Ends that are moved meanwhile are told twice.
func (t *teller) recallOn(ctx context.Context, f *follower, v view) error {
	l, err := t.chores.get(ctx)
	if err != nil {
		return err
	}
	if _, err := t.barrierOn(ctx, l); err != nil {
		return err
	}
	old, err := t.oldLogs(ctx, l, v.epoch)
	if err != nil {
		return err
	}
	for _, epoch := range append(old, v.epoch) {
		end := int32(math.MaxInt32)
		if epoch == v.epoch {
			end = v.next
		}
		err := t.eachPart(ctx, l, epoch, end, func(records []folded) error { return f.recall(v, endsOf(records), t.trust.Floor(), false) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // a log may be retired meanwhile
			return err
		}
	}
	if err := t.archive.recallMoved(ctx, l, f, v); err != nil {
		return err
	}
	return f.recall(v, nil, 0, true)
}
