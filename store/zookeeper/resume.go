package zookeeper

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// historyTimeout is how long reading what happened before may keep a view back.
	historyTimeout = 10 * time.Second

	// After retoldChanges that happened before, a feed makes a pause of retoldPause: whoever
	// files them must not be told faster than that can be done.
	retoldChanges = 4000
	retoldPause   = 50 * time.Millisecond
)

// Resume has the next [Store.Watch] begin at an earlier number, if the log still has all that
// happened since and that is not too much: so it is told again. Otherwise it begins with what
// there is.
func (s *Store) Resume(number uint64) { s.resume.Store(number) }

// held is a watcher that is told nothing until what happened before its first view was.
type held struct {
	store.Watcher
	first store.Snapshot
	calls []func(store.Watcher) // all since, and the view
	over  bool                  // it is told everything as it comes
}

func (h *held) call(what func(store.Watcher)) {
	if h.over {
		what(h.Watcher)
	} else {
		h.calls = append(h.calls, what)
	}
}

// Reset implements store.Watcher.
func (h *held) Reset(s store.Snapshot) {
	if h.first.Number == 0 {
		h.first = s
	}
	h.call(func(to store.Watcher) { to.Reset(s) })
}

// Apply implements store.Watcher.
func (h *held) Apply(upTo uint64, changes []store.Change) {
	h.call(func(to store.Watcher) { to.Apply(upTo, changes) })
}

// Lost implements store.Watcher.
func (h *held) Lost(err error) { h.call(func(to store.Watcher) { to.Lost(err) }) }

// tellEarlier tells the follower what happened since a number, and then all that was held back.
// If that cannot be done it begins with its first view, and what happened until then is a gap.
func (s *Store) tellEarlier(ctx context.Context, f *follower, h *held, since uint64) {
	f.mu.Lock()
	first, v := h.first, f.view
	f.mu.Unlock()
	was, all, err := s.earlier(ctx, first, v, since)
	if err == nil {
		s.tellAll(ctx, h, was, all)
	} else {
		s.log.Info("what happened before this server was started cannot be told", "since", since, "error", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil { // it has had the first view in parts
		h.calls = h.calls[1:]
	}
	for _, what := range h.calls {
		what(h.Watcher)
	}
	h.calls, h.over = nil, true
}

// earlier returns a view as of an earlier number, and what happened from there to the first one.
func (s *Store) earlier(ctx context.Context, first store.Snapshot, v view, since uint64) (was store.Snapshot, all []retold, err error) {
	floor := s.trust.Floor()
	if since <= floor || since > first.Number || v.count != 1 {
		return was, nil, errUntold
	}
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	l, err := s.chores.get(ctx)
	if err != nil {
		return was, nil, err
	}
	records, err := s.history(ctx, l, v.epoch, v.next, s.zxid(since))
	if err != nil {
		return was, nil, err
	}
	entries, err := s.rewind(first.Entries, records, s.zxid(since))
	if err != nil {
		return was, nil, err
	}
	was = store.Snapshot{Number: since, Entries: (&snapshot{entries: entries.byKey}).sorted()}
	was.Notices = slices.DeleteFunc(slices.Clone(first.Notices), func(n *lock.Notice) bool { return n.Number > since })
	all = append(s.retell(entries, records), retold{number: first.Number})
	if s.trust.Floor() != floor {
		return was, nil, errMeta
	}
	return was, all, nil
}

// tellAll tells an earlier view and what happened since, without haste.
func (s *Store) tellAll(ctx context.Context, h *held, was store.Snapshot, all []retold) {
	h.Watcher.Reset(was)
	told := 0
	for _, one := range all {
		h.Watcher.Apply(one.number, one.changes)
		if told += len(one.changes); told >= retoldChanges {
			told = 0
			_ = store.Pause(ctx, retoldPause)
		}
	}
}
