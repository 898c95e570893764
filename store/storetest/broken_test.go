package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
)

// bug is one mistake that a store can have, as what its clients do otherwise than those
// of store/memory. What is nil is done right.
type bug struct {
	does   string
	caught string // the case that must fail because of it

	number uint64           // that of the store before its first write
	loses  memory.Operation // requests that never arrive

	call      func(ctx context.Context, do func(context.Context) error) error // every call
	stored    func(c *client, e *lock.Entry)                                  // changes what Enqueue writes
	answered  func(c *client, e, placed *lock.Entry, written *bool)           // changes what it answers
	seen      func(e *lock.Entry)                                             // changes what is shown of an entry, wherever that is
	remove    func(ctx context.Context, c *client, r removal) error
	notify    func(ctx context.Context, c *client, n *lock.Notice, of *lock.Entry) error
	removePut func(ctx context.Context, c *client, r removal, note *lock.Note, p store.RecordPut) error
	refresh   func(ctx context.Context, c *client, e *lock.Entry) error
	remaining func(e *lock.Entry, left time.Duration, err error) (time.Duration, error)
	queue     func(c *client, r lock.Ref, entries []*lock.Entry) ([]*lock.Entry, error)
	newest    func(number uint64) uint64
	follow    following
	distrust  func(c *client)
	refusal   func(c *client) error

	opensAny  bool                                           // an earlier version is told nothing when it opens
	reopened  func(b *broken)                                // when one more client opens
	compacted func(b *broken)                                // when history is forgotten
	floored   func(b *broken, floor uint64, err error) error // when an operator has given a floor
}

// removal is what Remove is asked for.
type removal struct {
	*lock.Entry
	why   lock.Reason
	while []*lock.Entry
}

// broken is a store with a bug: a server without one, and what its clients keep of it.
type broken struct {
	bug
	server  *memory.Server
	deaf    atomic.Bool   // the second client is cut off from answers
	lost    atomic.Bool   // the next removal will be too
	stopped atomic.Bool   // feeds tell no more changes
	base    atomic.Uint64 // where numbers start over, or a floor

	mu     sync.Mutex
	gone   []*lock.Entry // that were removed
	ghosts []ghost
	why    lock.Reason // that was given last for what was not there
}

// ghost is an entry that is seen in all of its queues but the first.
type ghost struct {
	*lock.Entry
	until time.Time
}

// client is one client of a broken store.
type client struct {
	*broken
	sound  store.Store
	second bool
	late   bool        // it opened later than the first two
	older  bool        // it is of an earlier version
	doubts atomic.Bool // it refuses, and has told nobody
}

var _ store.Store = (*client)(nil)

func (c *client) around(ctx context.Context, do func(context.Context) error) error {
	if c.call == nil {
		return do(ctx)
	}
	return c.call(ctx, do)
}

func (c *client) Enqueue(ctx context.Context, e *lock.Entry) (placed *lock.Entry, written bool, err error) {
	if c.doubts.Load() {
		return nil, false, unavailable()
	}
	changed := *e
	changed.Claims = slices.Clone(e.Claims)
	if c.stored != nil {
		c.stored(c, &changed)
	}
	err = c.around(ctx, func(ctx context.Context) (err error) {
		placed, written, err = c.sound.Enqueue(ctx, &changed)
		return err
	})
	if err != nil || placed == nil {
		return nil, false, err
	}
	if written { // a bug that stores another id or TTL does not say so
		placed.ID, placed.TTL = e.ID, e.TTL
	}
	if c.answered != nil {
		c.answered(c, e, placed, &written)
	}
	return c.shown(placed), written, nil
}

func (c *client) Remove(ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry) error {
	err := c.around(ctx, func(ctx context.Context) error {
		if c.remove != nil {
			return c.remove(ctx, c, removal{e, why, while})
		}
		return c.sound.Remove(ctx, e, why, while...)
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.gone = append(c.gone, e)
	}
	return err
}

func (c *client) Notify(ctx context.Context, n *lock.Notice, of *lock.Entry) error {
	return c.around(ctx, func(ctx context.Context) error {
		if c.notify != nil {
			return c.notify(ctx, c, n, of)
		}
		return c.sound.Notify(ctx, n, of)
	})
}

func (c *client) RemoveAndPut(ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut) error {
	return c.around(ctx, func(ctx context.Context) error {
		if c.removePut != nil {
			return c.removePut(ctx, c, removal{e, why, nil}, note, p)
		}
		return c.sound.RemoveAndPut(ctx, e, why, note, p)
	})
}

func (c *client) Renew(ctx context.Context, e *lock.Entry) error {
	return c.around(ctx, func(ctx context.Context) error {
		if c.refresh != nil {
			return c.refresh(ctx, c, e)
		}
		return c.sound.Renew(ctx, e)
	})
}

func (c *client) Remaining(ctx context.Context, e *lock.Entry) (left time.Duration, err error) {
	err = c.around(ctx, func(ctx context.Context) (err error) {
		left, err = c.sound.Remaining(ctx, e)
		if c.remaining != nil {
			left, err = c.remaining(e, left, err)
		}
		return err
	})
	return left, err
}

func (c *client) Queue(ctx context.Context, r lock.Ref) (entries []*lock.Entry, number uint64, err error) {
	err = c.around(ctx, func(ctx context.Context) (err error) {
		entries, number, err = c.sound.Queue(ctx, r)
		if err == nil && c.queue != nil {
			entries, err = c.queue(c, r, entries)
		}
		return err
	})
	for i, e := range entries {
		entries[i] = c.shown(e)
	}
	return entries, number, err
}

func (c *client) Newest(ctx context.Context) (number uint64, err error) {
	err = c.around(ctx, func(ctx context.Context) (err error) {
		number, err = c.sound.Newest(ctx)
		return err
	})
	if c.newest != nil {
		number = c.newest(number)
	}
	return number, err
}

func (c *client) Distrust(ctx context.Context, number uint64) error {
	if c.distrust != nil {
		c.distrust(c)
		return nil
	}
	return c.around(ctx, func(ctx context.Context) error { return c.sound.Distrust(ctx, number) })
}

func (c *client) Refusal() error {
	switch {
	case c.refusal != nil:
		return c.refusal(c)
	case c.doubts.Load():
		return unavailable()
	}
	return c.sound.Refusal()
}

func (c *client) Watch(ctx context.Context, f store.Watcher) {
	switch {
	case c.follow != nil:
		c.follow(ctx, c, f)
	case c.seen != nil:
		telling(showing)(ctx, c, f)
	default:
		c.sound.Watch(ctx, f)
	}
}

// shown is what is seen of an entry.
func (c *client) shown(e *lock.Entry) *lock.Entry {
	copied := *e
	if c.seen != nil {
		c.seen(&copied)
	}
	return &copied
}

// there returns the first entry in the store that is wanted, or nil.
func (b *broken) there(wanted func(*lock.Entry) bool) *lock.Entry {
	all := b.server.Entries()
	if i := slices.IndexFunc(all, wanted); i >= 0 {
		return all[i]
	}
	return nil
}

// byID returns the entry with e's id in its tenant, whatever its locks are, or nil.
func (b *broken) byID(e *lock.Entry) *lock.Entry {
	return b.there(func(o *lock.Entry) bool { return o.Tenant == e.Tenant && o.ID == e.ID })
}

// ended returns why an entry with e's id ended, as far as that is remembered.
func (b *broken) ended(e *lock.Entry) lock.Reason {
	all := b.server.Ends()
	if i := slices.IndexFunc(all, func(end store.Ended) bool { return end.ID == e.ID }); i >= 0 {
		return all[i].Reason
	}
	return ""
}

// haunt leaves an entry in all of its queues but the first for a while.
func (b *broken) haunt(e *lock.Entry, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ghosts = append(b.ghosts, ghost{e, time.Now().Add(d)})
}

// haunted is a queue with its ghosts.
func haunted(c *client, r lock.Ref, entries []*lock.Entry) ([]*lock.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.ghosts {
		if g.Tenant == r.Tenant && claims(g.Entry, r.Name, 1) && time.Now().Before(g.until) && lock.Place(entries, g.ID) < 0 {
			entries = append(entries, g.Entry)
		}
	}
	slices.SortFunc(entries, func(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return entries, nil
}

// claims reports whether e claims the lock, in one of its claims from the nth on.
func claims(e *lock.Entry, name string, n int) bool {
	return slices.ContainsFunc(e.Claims[n:], func(c lock.Claim) bool { return c.Name == name })
}

func isLost(err error) bool { return errors.Is(err, lock.Lost) }

func unavailable() error { return store.Unavailable(errors.New("cut off"), "a call", false) }

// pause passes some time.
func pause(d time.Duration) { _ = store.Pause(context.Background(), d) }

// wire loses the requests that never arrive.
type wire struct {
	*memory.Cable
	loses memory.Operation
}

// Call implements [memory.Wire].
func (w wire) Call(ctx context.Context, op memory.Operation, id lock.ID, do func() error) error {
	if op == w.loses {
		return memory.ErrUnsent
	}
	return w.Cable.Call(ctx, op, id, do)
}
