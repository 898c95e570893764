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

// view is one that a follower was given; ends from before it are told later.
type view struct {
	count int   // views and losses before it
	lost  bool  // it is over, and there is no other yet
	epoch int32 // of the log in use
	next  int32 // the first record that is not in it
}

func (f *follower) call(what func(store.Watcher)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		what(f.f)
	}
}

// begin gives the follower a view. The caller holds the feed's mu.
func (f *follower) begin(from *feed) {
	f.call(func(to store.Watcher) {
		entries := (&snapshot{entries: from.entries.byKey}).sorted()
		to.Reset(store.Snapshot{Number: from.number, Entries: entries, Notices: from.attachedTo(entries)})
		f.view = view{count: f.view.count + 1, epoch: from.epoch, next: from.next}
	})
	select {
	case f.begun <- struct{}{}:
	default: // it will look anyway
	}
}

func (f *follower) lose(err error) {
	f.call(func(to store.Watcher) {
		to.Lost(err)
		f.view.count++
		f.view.lost = true
	})
}

func (f *follower) now() view {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
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
	err := errAnotherView
	f.call(func(to store.Watcher) {
		if f.view == v && !v.lost {
			to.Recall(told, complete)
			err = nil
		}
	})
	return err
}

// Watch implements store.Store. The first view is no older than the call.
func (s *Store) Watch(ctx context.Context, to store.Watcher) {
	since := s.resume.Swap(0)
	h := &held{Watcher: to, over: since == 0}
	f := &follower{f: h, begun: make(chan struct{}, 1)}
	for s.catchUp(ctx) != nil {
		if store.Pause(ctx, guardInterval/4) != nil {
			return
		}
	}
	s.feed.add(f)
	for ctx.Err() == nil {
		select {
		case <-f.begun:
			if since != 0 {
				s.tellEarlier(ctx, f, h, since)
				since = 0
			}
			s.recall(ctx, f)
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
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
func (s *Store) recall(ctx context.Context, f *follower) {
	for v := f.now(); ; {
		err := s.recallOn(ctx, f, v)
		switch {
		case err == nil, errors.Is(err, errAnotherView), ctx.Err() != nil, s.closing.Err() != nil:
			return
		case answered(err):
			s.log.Warn("the reasons of ends cannot be read; it is tried again", "error", err)
		}
		if store.Pause(ctx, longestPause) != nil {
			return
		}
	}
}

// recallOn reads what is remembered of ends, a part at a time: in the records that
// the logs still have, and then in the nodes to which those of older ones were moved.
// Ends that are moved meanwhile are told twice.
func (s *Store) recallOn(ctx context.Context, f *follower, v view) error {
	l, err := s.chores.get(ctx)
	if err != nil {
		return err
	}
	if _, err := s.barrierOn(ctx, l); err != nil {
		return err
	}
	old, err := s.oldLogs(ctx, l, v.epoch)
	if err != nil {
		return err
	}
	for _, epoch := range append(old, v.epoch) {
		end := int32(math.MaxInt32)
		if epoch == v.epoch {
			end = v.next
		}
		err := s.eachPart(ctx, l, epoch, end, func(records []folded) error { return f.recall(v, endsOf(records), s.trust.Floor(), false) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // a log may be retired meanwhile
			return err
		}
	}
	if err := s.archive.recallMoved(ctx, l, f, v); err != nil {
		return err
	}
	return f.recall(v, nil, 0, true)
}
