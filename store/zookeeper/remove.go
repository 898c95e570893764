package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// removal is one call that removes an entry.
type removal struct {
	entry   *lock.Entry
	version int32 // that the lease must have, or noLease, or anyVersion
	why     lock.Reason
	note    *lock.Note

	lease   string
	paths   []string // to delete, in order, the lease first
	choice  bool     // it was decided by a choice not made: the entry must not have been narrowed
	while   []any    // checks of what else it was decided by
	besides []any    // operations of the same transaction
	held    string   // the conflict key of these operations, if there are some
	mark    string   // of the entry's key, "" if it has none
	try     string
	since   place // records since then may belong to this call's attempts
}

// anyVersion matches any version in ZooKeeper.
const anyVersion = -1

// remover removes entries from their queues, for calls and for expired leases.
type remover struct {
	*reader
	calls   *connector
	commits *committer
	feed    *feed
	leases  *leases
	pasts   store.Pasts // of the ends that this replica knows
}

// newRemoval plans to delete e's nodes. leased reports whether e is known to have a lease.
func (m *remover) newRemoval(e *lock.Entry, leased bool, version int32, why lock.Reason) *removal {
	k := keyOf(e)
	primary := m.root.primary(k)
	r := &removal{
		entry: e, version: version, why: why, lease: leaseOf(primary, e.Handle), try: rand.Text()[:12],
	}
	if leased {
		r.paths = append(r.paths, r.lease)
	}
	r.paths = append(append(r.paths, primary), m.root.secondaries(k, e.Claims)...)
	if !fresh(e) {
		r.mark = m.root.mark(e.Tenant, e.ID)
	}
	r.since = m.feed.here()
	return r
}

func (m *remover) removeWrite(r *removal) *write {
	k := keyOf(r.entry)
	p := &part{change: change{
		Tenant: k.tenant, Lock: k.lock, ID: k.id, Reason: r.why, At: time.Now().UnixMilli(), Try: r.try,
		Keyed: r.mark != "", Note: m.pasts.Note(k.tenant, r.note),
	}}
	if r.why != lock.Withdrawn {
		p.change.Was = m.pasts.Of(r.entry, m.zxid(r.entry.Number))
	}
	for _, path := range r.paths {
		version := int32(anyVersion)
		switch {
		case path == r.lease:
			version = r.version
		case r.entry.Choosing() && path == m.root.primary(k):
			version = unnarrowed
		}
		p.ops = append(p.ops, &zk.DeleteRequest{Path: path, Version: version})
	}
	if r.mark != "" {
		data := store.Encode(mark{Lock: k.lock, Reason: r.why, At: p.change.At})
		p.ops = append(p.ops, &zk.SetDataRequest{Path: r.mark, Data: data, Version: anyVersion})
	}
	p.ops = append(p.ops, r.while...)
	size := len(p.change.Was) + noteBytes(p.change.Note)
	w := &write{
		Tenant: k.tenant, Keys: []string{k.conflict()}, Must: true, Payload: p,
		Bytes: 2 * size, // the record is also the log's data
	}
	if p.ops = append(p.ops, r.besides...); r.held != "" {
		w.Keys, w.Bytes = append(w.Keys, r.held), w.Bytes+store.MaxRecordValue
	}
	w.Ops, w.Bytes = len(p.ops), w.Bytes+opSize*(len(p.ops)+1)
	return w
}

// opSize exceeds an operation with the longest names, without data.
const opSize = 512

// witnesses returns checks that hold while all the entries are there. Each is of a node whose path
// is used only once, so that it exists exactly while the entry does. A choosing entry must not have
// been narrowed.
func (r layout) witnesses(entries ...*lock.Entry) (checks []any) {
	for _, e := range entries {
		version := int32(anyVersion)
		if e.Choosing() {
			version = unnarrowed
		}
		if fresh(e) || e.Choosing() {
			checks = append(checks, &zk.CheckVersionRequest{Path: r.primary(keyOf(e)), Version: version})
		}
		if !fresh(e) {
			path := r.lease(keyOf(e), e.Handle)
			checks = append(checks, &zk.CheckVersionRequest{Path: path, Version: anyVersion})
		}
	}
	return checks
}

// Remove implements store.Store.
func (s *Store) Remove(
	ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry,
) error {
	return s.remover.remove(ctx, e, why, while)
}

func (m *remover) remove(
	ctx context.Context, e *lock.Entry, why lock.Reason, while []*lock.Entry,
) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if err := m.checkNumber(ctx, e); err != nil {
		return err
	}
	r := m.newRemoval(e, m.hasLease(e), anyVersion, why)
	if i := lock.Place(while, e.ID); i >= 0 {
		r.choice, while = e.Choosing(), slices.Delete(slices.Clone(while), i, i+1)
	}
	r.while = m.root.witnesses(while...)
	return engine.Remove(ctx, m.timeout, &removing{remover: m, removal: r})
}

// removing is one call that removes an entry: its attempts.
type removing struct {
	*remover
	*removal
	unknown bool // there was one with an unknown outcome
}

// Try implements engine.Removal.
func (a *removing) Try(ctx context.Context) error {
	out := a.attempt(ctx, a.removal)
	a.unknown = a.unknown || out.unknown
	switch {
	case out.err == nil || out.unknown:
		return out.err
	case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
		return engine.ErrGone
	case errors.Is(out.err, zk.ErrNoNode) && out.op >= a.own(),
		errors.Is(out.err, zk.ErrBadVersion) && (a.choice || out.op >= a.own()):
		return lock.Errorf(lock.Changed, "what the removal was decided by is gone")
	case errors.Is(out.err, zk.ErrNotEmpty), errors.Is(out.err, zk.ErrBadVersion):
	case answered(out.err):
		return unavailable(out.err, "remove", false)
	}
	return errors.Join(batch.ErrNotSent, out.err)
}

// Did implements engine.Removal, by the record of the removal. If the record may have been folded
// since, it credits the attempt.
func (a *removing) Did(ctx context.Context) (bool, error) {
	if !a.unknown {
		return false, nil
	}
	l, err := a.calls.get(ctx)
	if err != nil {
		return false, err
	}
	stat, err := a.barrierOn(ctx, l)
	if err != nil {
		return false, err
	}
	if a.since.epoch != a.epoch.Load() {
		return true, nil
	}
	written, err := a.records(ctx, l, a.since.epoch, a.since.n, created(stat))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return true, nil
	case err != nil:
		return false, err
	}
	for _, w := range written {
		ours := func(c change) bool { return c.Try == a.try }
		if slices.ContainsFunc(w.record.Changes, ours) {
			return true, nil
		}
	}
	return false, nil
}

// hasLease reports whether an entry has been renewed, as far as this replica knows. If it is
// wrong, the server first rejects the removal, and with it the rest of its transaction.
func (m *remover) hasLease(e *lock.Entry) bool { return !fresh(e) || m.leases.made(keyOf(e)) }

// attempt writes the removal. It also deletes a lease that this replica did not know, unless
// there must not be one. An entry that was narrowed since is removed as it is now, unless the
// removal was decided by its choice.
func (m *remover) attempt(ctx context.Context, r *removal) outcome {
	for {
		out := m.commits.do(ctx, m.removeWrite(r))
		if !r.choice && m.narrowed(ctx, r, out) {
			continue
		}
		known := r.version == noLease || slices.Contains(r.paths, r.lease)
		if known || !errors.Is(out.err, zk.ErrNotEmpty) {
			m.reportStuck(ctx, r, out)
			return out
		}
		r.paths = slices.Insert(r.paths, out.op, r.lease)
	}
}

// unnarrowed is the version of an entry's node until the entry is narrowed, which sets it.
const unnarrowed = 0

// narrowed reports whether an attempt failed because the entry was narrowed, and plans the removal
// for what it is now.
func (m *remover) narrowed(ctx context.Context, r *removal, out outcome) bool {
	k := keyOf(r.entry)
	if !r.entry.Choosing() || !errors.Is(out.err, zk.ErrBadVersion) || out.op >= len(r.paths) ||
		r.paths[out.op] != m.root.primary(k) {
		return false
	}
	now, err := m.find(ctx, m.calls, k)
	if err != nil || now == nil || now.Choosing() {
		return false
	}
	r.entry, r.paths = now, append(r.paths[:out.op+1], m.root.secondaries(k, now.Claims)...)
	return true
}

// own returns how many of the operations are on the entry's own nodes.
func (r *removal) own() int {
	if r.mark != "" {
		return len(r.paths) + 1
	}
	return len(r.paths)
}

// reportStuck logs how to fix an entry that cannot be removed because a person has changed its
// nodes by hand.
func (m *remover) reportStuck(ctx context.Context, r *removal, out outcome) {
	how := ""
	switch {
	case !answered(out.err) || out.op >= r.own():
	case errors.Is(out.err, zk.ErrNoAuth):
		how = "restore its ACL"
	case errors.Is(out.err, zk.ErrNotEmpty):
		how = "delete what is below it"
	case errors.Is(out.err, zk.ErrNoNode) && out.op > 0:
		how = "create it, empty"
	}
	if how != "" && m.stands(ctx, r.entry) {
		path := append(slices.Clone(r.paths), r.mark)[out.op]
		m.report(path, "a node was changed by hand, and blocks its lock: "+how)
	}
}

// stands reports whether the feed has the entry, and everything up to a moment after the call: no
// removal of it was recorded.
func (m *remover) stands(ctx context.Context, e *lock.Entry) bool {
	now, err := m.barrier(ctx, m.calls)
	return err == nil && m.feed.reaches(ctx, now.Mzxid) && m.feed.shows(e, now.Mzxid)
}

// checkNumber fails if e is known not to be the stored entry. The path of a lease with a handle
// is never used twice. So a lagging server may not know it yet, but what it knows is true.
// Without it, the removal itself decides.
func (m *remover) checkNumber(ctx context.Context, e *lock.Entry) error {
	known := m.feed.entry(keyOf(e))
	switch {
	case known != nil && known.Handle == e.Handle && known.Number == e.Number:
		return nil
	case fresh(e) && known == nil:
		return nil // there is no other
	case fresh(e): // a greater fence floor was set, and the view has the new number
		return store.Lost("another entry is in the queue")
	}
	path := m.root.lease(keyOf(e), e.Handle)
	n, err := onLink(ctx, m.calls, get(path))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return unavailable(err, "remove", false)
	case n.stat.Czxid != m.zxid(e.Number):
		return store.Lost("another entry is in the queue")
	}
	return nil
}
