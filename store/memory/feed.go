package memory

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/store"
)

// endsAtOnce is how many kept ends one part reports.
const endsAtOnce = 100

// trustPause is the pause before a server that lost its past is listed again.
const trustPause = 250 * time.Millisecond

// listing is the start of a feed.
type listing struct {
	view store.Snapshot
	ends []store.Ended
	next cursor
}

// Watch implements [store.Store].
func (c *Client) Watch(ctx context.Context, f store.Watcher) {
	for ctx.Err() == nil {
		listening, stop := c.wire.Listen(ctx)
		err := c.follow(listening, f)
		stop()
		if ctx.Err() == nil {
			f.Lost(err)
		}
	}
}

// follow reports a view and what follows it, until ctx or the history ends, and returns why.
func (c *Client) follow(ctx context.Context, f store.Watcher) error {
	l, err := once(ctx, c, List, "", func() (listing, uint64, error) {
		view, ends, next := c.server.list()
		return listing{view, ends, next}, view.Number, nil
	})
	if err != nil {
		return err
	}
	if l.view.Number < c.newest() {
		return c.awaitTrust(ctx)
	}
	f.Reset(l.view)
	tellEnds(f, l.ends)
	for {
		r, err := c.server.next(ctx, l.next)
		if err != nil {
			return err
		}
		if err := c.wire.Tell(ctx, r); err != nil {
			return err
		}
		c.note(0, r.Number)
		f.Apply(r.Number, r.Changes)
		l.next.next++
	}
}

// awaitTrust waits while the server's past is missing: what it lists is older than what it
// reported before.
func (c *Client) awaitTrust(ctx context.Context) error {
	if err := store.Pause(ctx, trustPause); err != nil {
		return err
	}
	return errors.New("the store lost its past")
}

func tellEnds(f store.Watcher, ends []store.Ended) {
	for len(ends) > endsAtOnce {
		f.Recall(ends[:endsAtOnce], false)
		ends = ends[endsAtOnce:]
	}
	f.Recall(ends, true)
}
