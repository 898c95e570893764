package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// joiner puts entries into their queues.
type joiner struct {
	*reader
	calls   *connector
	commits *committer
	orphans *store.Cleaner[*orphan]

	admissions *admissions
}

// join is one call of Enqueue, with all its attempts.
type join struct {
	*joiner
	entry  *lock.Entry
	handle int64
	taken  int32 // the version of the key's mark to replace, or noMark
	since  place // in the log, before the first attempt

	unknown bool     // one of the attempts may have happened
	open    []*write // those of a fresh id
	unseen  bool     // and the call has not read yet whether it did

	// due is when the call ends. Time that its write spends behind other writes extends it, but not
	// beyond last.
	due, last time.Time
}

func (j *join) hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, j.due)
}

func (j *join) pause(ctx context.Context) error {
	ctx, cancel := j.hurried(ctx)
	defer cancel()
	return store.Pause(ctx, firstPause)
}

// outcome finds out what became of the attempts.
func (j *join) outcome(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := j.hurried(ctx)
	defer cancel()
	return j.outcomeOf(ctx, j.entry, j.since)
}

// write queues an attempt. Its wait for other writes does not count as its own time.
func (j *join) write(ctx context.Context, w *write) outcome {
	w.Gone, w.Due = store.Gone(ctx), j.due
	out := j.commits.do(ctx, w)
	if j.due = j.due.Add(w.Waited()); j.due.After(j.last) {
		j.due = j.last
	}
	j.unknown, j.unseen = j.unknown || out.unknown, out.unknown
	if out.unknown {
		j.open = append(j.open, w)
	}
	return out
}

// attempt writes the entry, or finds that it exists. A *lock.Error is final; after any other
// error the next attempt may succeed.
func (j *join) attempt(ctx context.Context) (found *lock.Entry, written bool, err error) {
	e := j.entry
	if j.unseen && !e.Resumable() {
		if found, err := j.outcome(ctx); found != nil || err != nil {
			return found, true, err
		}
	}
	w := j.joinWrite(e, j.handle, j.taken)
	w.Must = j.unknown // what may have happened must not be rejected any more
	if w.Payload.admitted = j.admissions.known(e); w.Payload.admitted == nil {
		switch err := j.admit(ctx, w); {
		case errors.Is(err, store.ErrClosuresChanged):
			return j.refused(ctx, unavailable(err, "enqueue", j.unknown))
		case err != nil:
			return nil, false, err
		}
	}
	out := j.write(ctx, w)
	switch moved := (*closuresMoved)(nil); {
	case out.err == nil:
		placed := *e
		placed.Number, placed.Handle = j.number(out.zxid), j.handle
		placed.Lingers, placed.Admitted = false, 0
		return &placed, true, nil
	case errors.As(out.err, &moved):
		j.admissions.forget(e.Tenant)
	case errors.Is(out.err, zk.ErrNodeExists), errors.Is(out.err, zk.ErrBadVersion):
		return j.refused(ctx, out.err)
	case errors.Is(out.err, zk.ErrNoNode):
		j.taken = noMark
		_ = j.makeShards(ctx, e) // the next attempt shows whether it worked
	case errors.Is(out.err, lock.Overloaded):
		return nil, false, out.err
	case answered(out.err):
		return nil, false, unavailable(out.err, "enqueue", j.unknown)
	}
	return nil, false, out.err
}

// refused returns the entry that exists instead, or why there is none. The next attempt can take
// the key of a withdrawn entry. It is a new entry, because the name of a lease is used once.
func (j *join) refused(
	ctx context.Context, cause error,
) (found *lock.Entry, written bool, err error) {
	ctx, cancel := j.hurried(ctx)
	defer cancel()
	found, version, err := j.findByKey(ctx, j.entry)
	switch {
	case err != nil:
		return nil, false, err
	case found != nil:
		return found, found.Handle == j.handle, nil
	case version != j.taken:
		j.handle, j.taken = newHandle(j.entry), version
	}
	return nil, false, cause
}

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
	for i, c := range e.Claims {
		w.Keys = append(w.Keys, "lock,"+e.Tenant+","+c.Name)
		if i > 0 {
			p.ops = append(p.ops, j.create(j.root.secondary(k, c.Name), nil))
		}
	}
	w.Ops = len(p.ops)
	w.Bytes = 3*len(data) + opSize*(len(p.ops)+1) // the data is also in the record and in the log
	return w
}

// makeShards makes the shards of e's nodes.
func (j *join) makeShards(ctx context.Context, e *lock.Entry) error {
	ctx, cancel := j.hurried(ctx)
	defer cancel()
	for _, c := range e.Claims {
		if err := j.ensure(ctx, j.calls, j.root.shardOf(e.Tenant, c.Name, e.ID), nil); err != nil {
			return err
		}
	}
	if e.Resumable() {
		return j.ensure(ctx, j.calls, j.root.keyShard(e.Tenant, e.ID), nil)
	}
	return nil
}

// find reads the entry, or nil if there is none. Before it, a write of this replica must be
// answered on the same connection, or on one opened earlier: then find sees what that write saw,
// or newer.
func (j *joiner) find(ctx context.Context, k key) (*lock.Entry, error) {
	l, err := j.calls.get(ctx)
	if err != nil {
		return nil, err
	}
	e, err := j.readEntry(ctx, l, k)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return e, err
}
