package zookeeper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// joiner puts entries into their queues.
type joiner struct {
	*reader
	calls   *connector
	commits *committer

	admissions *admissions
}

// joining is one call of Enqueue: its attempts to write an entry.
type joining struct {
	*joiner
	entry   *lock.Entry
	handles []int64 // of all attempts; the last one is that of the next
	taken   int32   // the version of the key's mark to replace, or noMark

	open  []*write // attempts with an unknown outcome
	again bool     // there was one: what may have happened must not be rejected any more
}

var _ engine.Attempts = (*joining)(nil)

func (j *joiner) begin(e *lock.Entry) *joining {
	return &joining{joiner: j, entry: e, handles: []int64{newHandle(e)}, taken: noMark}
}

func (j *joining) handle() int64 { return j.handles[len(j.handles)-1] }

// Put implements engine.Attempts.
func (j *joining) Put(
	ctx context.Context, dueAfter func(pending time.Duration) time.Time,
) (placed *lock.Entry, pending time.Duration, err error) {
	e, due := j.entry, dueAfter(0)
	w := j.joinWrite(e, j.handle(), j.taken)
	w.Must = j.again
	if err := j.admit(ctx, w, due); err != nil {
		return nil, 0, err
	}
	w.Gone, w.Due = store.Gone(ctx), due
	out := j.commits.do(ctx, w)
	if out.err == nil {
		written := *e
		written.Number, written.Handle = j.number(out.zxid), j.handle()
		written.Lingers, written.Admitted = false, 0
		return &written, w.Waited(), nil
	}
	if out.unknown {
		j.open, j.again = append(j.open, w), true
		return nil, w.Waited(), out.err
	}
	return nil, w.Waited(), j.refused(ctx, out.err, due)
}

// refused returns the error of an attempt that wrote nothing, and makes what was missing.
func (j *joining) refused(ctx context.Context, err error, due time.Time) error {
	switch moved := (*closuresMoved)(nil); {
	case errors.As(err, &moved):
		j.admissions.forget(j.entry.Tenant)
	case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		return engine.ErrConflict
	case errors.Is(err, zk.ErrNoNode):
		j.taken = noMark
		ctx, cancel := context.WithDeadline(ctx, due)
		defer cancel()
		_ = j.makeShards(ctx) // the next attempt shows whether it worked
	case errors.Is(err, lock.Overloaded):
		return err
	case answered(err):
		return unavailable(err, "enqueue", false)
	}
	return errors.Join(batch.ErrNotSent, err)
}

// Find implements engine.Attempts. An attempt that replaces another mark is a new entry, because
// the name of a lease is used once.
func (j *joining) Find(ctx context.Context) (found *lock.Entry, moved bool, err error) {
	found, version, err := j.findByKey(ctx, j.entry)
	if err != nil || found != nil {
		return found, false, err
	}
	if moved = version != j.taken; moved {
		j.handles, j.taken = append(j.handles, newHandle(j.entry)), version
	}
	return nil, moved, nil
}

// ShutOut implements engine.Attempts. When each attempt has an outcome, none is in flight: the
// server runs no write of a broken connection once the next one is in use.
func (j *joining) ShutOut(ctx context.Context) error {
	for len(j.open) > 0 {
		if _, err := j.open[0].Late(ctx); errors.Is(err, batch.ErrUnknown) && ctx.Err() != nil {
			return err
		}
		j.open = j.open[1:]
	}
	_, err := j.barrier(ctx, j.calls)
	return err
}

// Ours implements engine.Attempts. A fresh id has no handle, and no other caller.
func (j *joining) Ours(e *lock.Entry) bool { return slices.Contains(j.handles, e.Handle) }

// Open implements engine.Attempts: an attempt uses nothing but its nodes.
func (*joining) Open(*lock.Entry) bool { return false }

// End implements engine.Attempts.
func (*joining) End(context.Context, *lock.Entry) error { return nil }

// newHandle returns the name of the lease of an entry whose id can be used again, or 0 for a
// fresh id.
func newHandle(e *lock.Entry) int64 {
	if e.Resumable() {
		return randomHandle()
	}
	return 0
}

// joinWrite makes the nodes of an entry: the primary, and one in each other lock of a set. If its
// id can be used again, it also makes the lease and the mark of its key. A handle of 0 stands for
// a [fresh] id.
func (j *joiner) joinWrite(e *lock.Entry, handle int64, taken int32) *write {
	k, v := keyOf(e), valueOf(e, handle)
	data := store.Encode(v)
	p := &part{change: change{Tenant: k.tenant, Lock: k.lock, ID: k.id, Joined: v}}
	w := &write{Tenant: e.Tenant, Keys: []string{k.conflict()}, Lingers: e.Lingers, Payload: p}
	p.ops = append(p.ops, j.create(j.root.primary(k), data))
	if e.Resumable() {
		p.ops = append(p.ops, j.claim(e, taken), j.create(j.root.lease(k, handle), nil))
	}
	for _, c := range e.Claims {
		w.Keys = append(w.Keys, "lock,"+e.Tenant+","+c.Name)
	}
	for _, path := range j.root.secondaries(k, e.Claims) {
		p.ops = append(p.ops, j.create(path, nil))
	}
	w.Ops = len(p.ops)
	w.Bytes = 3*len(data) + opSize*(len(p.ops)+1) // the data is also in the record and in the log
	return w
}

// makeShards makes the shards of the entry's nodes.
func (j *joining) makeShards(ctx context.Context) error {
	e := j.entry
	if err := j.ensure(ctx, j.calls, j.root.shardOf(e.Tenant, e.Home(), e.ID)); err != nil {
		return err
	}
	for _, c := range e.Claims {
		if err := j.ensure(ctx, j.calls, j.root.shardOf(e.Tenant, c.Name, e.ID)); err != nil {
			return err
		}
	}
	if e.Resumable() {
		return j.ensure(ctx, j.calls, j.root.keyShard(e.Tenant, e.ID))
	}
	return nil
}

// find reads the entry, or nil if there is none. Before it, a write of this replica must be
// answered on the same connection, or on one opened earlier: then find sees what that write saw,
// or newer.
func (r *reader) find(ctx context.Context, c *connector, k key) (*lock.Entry, error) {
	l, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	e, err := r.readEntry(ctx, l, k)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return e, err
}
