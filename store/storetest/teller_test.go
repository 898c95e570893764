package storetest_test

import (
	"context"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// following is what a client with a bug does in Watch.
type following = func(ctx context.Context, c *client, f store.Watcher)

// teller tells a follower something else than what happened, or nothing. What is nil is
// told as it is.
type teller struct {
	store.Watcher
	reset  func(store.Snapshot)
	recall func([]store.Ended, bool)
	apply  func(uint64, []store.Change)
	lost   func(error)
}

func (t *teller) Reset(s store.Snapshot) {
	if t.reset == nil {
		t.Watcher.Reset(s)
		return
	}
	t.reset(s)
}

func (t *teller) Recall(ends []store.Ended, complete bool) {
	if t.recall == nil {
		t.Watcher.Recall(ends, complete)
		return
	}
	t.recall(ends, complete)
}

func (t *teller) Apply(upTo uint64, changes []store.Change) {
	if t.apply == nil {
		t.Watcher.Apply(upTo, changes)
		return
	}
	t.apply(upTo, changes)
}

func (t *teller) Lost(err error) {
	if t.lost == nil {
		t.Watcher.Lost(err)
		return
	}
	t.lost(err)
}

// telling follows by way of a teller.
func telling(tell func(*client, *teller)) following {
	return func(ctx context.Context, c *client, f store.Watcher) {
		t := &teller{Watcher: f}
		tell(c, t)
		c.sound.Watch(ctx, t)
	}
}

// viewing changes the views that a feed begins with.
func viewing(change func(*client, *store.Snapshot)) following {
	return telling(func(c *client, t *teller) {
		t.reset = func(s store.Snapshot) {
			change(c, &s)
			t.Watcher.Reset(s)
		}
	})
}

// changing changes what a feed tells of the entries that come and go.
func changing(change func(*store.Change)) following {
	return telling(func(_ *client, t *teller) {
		t.apply = func(upTo uint64, changes []store.Change) { t.Watcher.Apply(upTo, changed(changes, change)) }
	})
}

func changed(changes []store.Change, change func(*store.Change)) []store.Change {
	var all []store.Change
	for _, c := range changes {
		if c.Joined != nil {
			copied := *c.Joined
			c.Joined = &copied
		}
		change(&c)
		all = append(all, c)
	}
	return all
}

// recalling changes the ends that are remembered.
func recalling(change func(*client, *store.Ended)) following {
	return telling(func(c *client, t *teller) {
		t.recall = func(ends []store.Ended, complete bool) {
			for i := range ends {
				change(c, &ends[i])
			}
			t.Watcher.Recall(ends, complete)
		}
	})
}

// showing shows entries, in a feed, as the client shows them elsewhere.
func showing(c *client, t *teller) {
	t.reset = func(s store.Snapshot) {
		for i, e := range s.Entries {
			s.Entries[i] = c.shown(e)
		}
		t.Watcher.Reset(s)
	}
	t.apply = func(upTo uint64, changes []store.Change) {
		t.Watcher.Apply(upTo, changed(changes, func(change *store.Change) {
			if change.Joined != nil {
				change.Joined = c.shown(change.Joined)
			}
		}))
	}
}

// insteadOf gives a removal's reason in the place of another one.
func insteadOf(right, wrong lock.Reason) func(*store.Change) {
	return func(c *store.Change) {
		if c.Joined == nil && c.Reason == right {
			c.Reason = wrong
		}
	}
}
