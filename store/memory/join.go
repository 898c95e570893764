package memory

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// Enqueue implements [store.Store].
func (c *Client) Enqueue(
	ctx context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	if ctx.Err() != nil || store.IsGone(ctx) {
		return nil, false, store.Unavailable(ErrUnsent, string(Put), false)
	}
	return c.joins.Enqueue(ctx, e, &attempts{client: c, entry: e})
}

// attempts are those of one call of Enqueue.
type attempts struct {
	client    *Client
	entry     *lock.Entry
	handles   []int64
	withdrawn uint64 // the number of the withdrawal that freed the key; or 0
	writer    int64  // of the last attempt
}

// Put implements [engine.Attempts].
func (a *attempts) Put(
	ctx context.Context, due func(pending time.Duration) time.Time,
) (placed *lock.Entry, pending time.Duration, err error) {
	ctx, cancel := context.WithDeadline(ctx, due(0))
	defer cancel()
	c := a.client
	handle, known := int64(c.attempt()), c.newest()
	a.handles, a.writer = append(a.handles, handle), c.writing()
	p := put{a.entry, handle, a.withdrawn, c.id, a.writer}
	placed, err = once(ctx, c, Put, a.entry.ID, func() (*lock.Entry, uint64, error) {
		return c.server.put(p, known)
	})
	if now := (*shutOutError)(nil); errors.As(err, &now) {
		c.writes(now.writer)
	}
	if errors.Is(err, ErrUnsent) {
		err = errors.Join(batch.ErrNotSent, err)
	}
	return placed, 0, err
}

// Find implements [engine.Attempts].
func (a *attempts) Find(ctx context.Context) (found *lock.Entry, moved bool, err error) {
	type look struct {
		found     *lock.Entry
		withdrawn uint64
	}
	l, err := once(ctx, a.client, Find, a.entry.ID, func() (l look, number uint64, err error) {
		l.found, l.withdrawn, number, err = a.client.server.lookFor(a.entry)
		return l, number, err
	})
	if err != nil {
		return nil, false, err
	}
	moved, a.withdrawn = l.withdrawn != a.withdrawn, l.withdrawn
	return l.found, moved, nil
}

// Admitted implements [engine.Attempts].
func (a *attempts) Admitted(ctx context.Context) error {
	now, err := driver{a.client}.Look(ctx, engine.KeyOf(store.ClosuresKey(a.entry.Tenant)), true)
	if err == nil && uint64(now.Position) != a.entry.Admitted {
		err = store.ErrClosuresChanged
	}
	return err
}

// ShutOut implements [engine.Attempts]: the server takes no write any more that has the client's
// number of the attempt.
func (a *attempts) ShutOut(ctx context.Context) error {
	c := a.client
	_, err := once(ctx, c, Exclude, a.entry.ID, func() (none, uint64, error) {
		return none{}, c.server.shutOut(c.id, a.writer), nil
	})
	if err == nil {
		c.writes(a.writer + 1)
	}
	return err
}

// Ours implements [engine.Attempts].
func (a *attempts) Ours(e *lock.Entry) bool { return slices.Contains(a.handles, e.Handle) }

// Open implements [engine.Attempts]: a lease ends with its entry.
func (*attempts) Open(*lock.Entry) bool { return false }

// End implements [engine.Attempts].
func (*attempts) End(context.Context, *lock.Entry) error { return nil }
