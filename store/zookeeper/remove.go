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
)

// removal is one entry's way out.
type removal struct {
	entry   *lock.Entry
	version int32 // that the lease must have, or noLease, or anyVersion
	why     lock.Reason
	note    *lock.Note

	lease, primary string
	paths          []string // to delete, in order, the lease first
	while          []string // that must be there
	besides        []any    // what is done in the same transaction
	held           string   // what is done besides must not share its transaction with another of this key
	mark           string   // of the entry's key, "" if it has none
	marked         int32    // the version that the mark must have, or anyVersion
	try            string
	// czxid of the entry, if nothing is deleted whose path is used once. What does
	// that ends whatever is in the log under its key then. Its number would not tell,
	// as the floor may be another one than when that was made.
	czxid int64
	since place // records since then may be of an attempt of ours
}

// anyVersion is what ZooKeeper takes for any.
const anyVersion = -1

// remover takes entries out of their queues: those that are removed, those whose leases
// are over, and what is left of those that somebody damaged.
type remover struct {
	*reader
	calls   *connector
	commits *committer
	feed    *feed
	leases  *leases
	pasts   store.Pasts // of this replica's ends
}

// newRemoval plans to delete e's nodes, leased telling whether it is known to have a
// lease.
func (m *remover) newRemoval(e *lock.Entry, leased bool, version int32, why lock.Reason) *removal {
	k := keyOf(e)
	r := &removal{
		entry: e, version: version, why: why, lease: m.root.lease(k, e.Handle), primary: m.root.primary(k), try: rand.Text()[:12],
		marked: anyVersion,
	}
	if leased {
		r.paths = append(r.paths, r.lease)
	}
	r.paths = append(r.paths, r.primary)
	for _, c := range e.Claims[1:] {
		r.paths = append(r.paths, m.root.secondary(k, c.Name))
	}
	if !fresh(e) {
		r.mark = m.root.mark(e.Tenant, e.ID)
	}
	r.since = m.feed.here()
	return r
}

func (m *remover) removeWrite(r *removal) *write {
	k := keyOf(r.entry)
	p := &part{change: change{
		Tenant: k.tenant, Lock: k.lock, ID: k.id, Czxid: r.czxid,
		Reason: r.why, At: time.Now().UnixMilli(), Try: r.try, Keyed: r.mark != "", Note: m.pasts.Note(k.tenant, r.note),
	}}
	at := m.zxid(r.entry.Number)
	if r.why != lock.Withdrawn {
		p.change.Was = m.pasts.Of(r.entry, at)
	}
	p.change.Whole = saysAll(p.change.Was, r.entry)
	if !p.change.Whole {
		p.change.Gone = goneOf(r.entry, at)
	}
	for _, path := range r.paths {
		version := int32(anyVersion)
		if path == r.lease {
			version = r.version
		}
		p.ops = append(p.ops, &zk.DeleteRequest{Path: path, Version: version})
	}
	if r.mark != "" {
		data := store.Encode(mark{Lock: k.lock, Reason: r.why, At: p.change.At})
		p.ops = append(p.ops, &zk.SetDataRequest{Path: r.mark, Data: data, Version: r.marked})
	}
	for _, path := range r.while {
		p.ops = append(p.ops, &zk.CheckVersionRequest{Path: path, Version: anyVersion})
	}
	w := &write{
		Tenant: k.tenant, Keys: []string{k.conflict()}, Must: true, Payload: p,
		Bytes: 2 * (len(p.change.Was) + len(p.change.Gone) + noteBytes(p.change.Note)), // the record is the log's data too
	}
	if p.ops = append(p.ops, r.besides...); r.held != "" {
		w.Keys, w.Bytes = append(w.Keys, r.held), w.Bytes+store.MaxRecordValue
	}
	w.Ops, w.Bytes = len(p.ops), w.Bytes+opSize*(len(p.ops)+1)
	return w
}

// opSize is more than an operation takes besides data, with the longest names.
const opSize = 512

// witnesses returns a node of each entry whose path is used only once, so that it is
// there if and only if that very entry is.
func (m *remover) witnesses(entries []*lock.Entry) []string {
	var paths []string
	for _, e := range entries {
		if fresh(e) {
			paths = append(paths, m.root.primary(keyOf(e)))
		} else {
			paths = append(paths, m.root.lease(keyOf(e), e.Handle))
		}
	}
	return paths
}

// Remove implements store.Store.
func (s *Store) Remove(ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry) error {
	return s.remover.remove(ctx, e, why, while)
}

func (m *remover) remove(ctx context.Context, e *lock.Entry, why lock.Reason, while []*lock.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if err := m.checkNumber(ctx, e); err != nil {
		return err
	}
	r := m.newRemoval(e, m.hasLease(ctx, e), anyVersion, why)
	r.while = m.witnesses(while)
	unknown := false
	for {
		out := m.attempt(ctx, r)
		switch {
		case out.err == nil:
			return nil
		case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
			return m.removedBefore(ctx, r, unknown)
		case errors.Is(out.err, zk.ErrNoNode) && out.op >= len(r.paths):
			return lock.Errorf(lock.Changed, "what the removal was decided by is gone")
		case answered(out.err) && !errors.Is(out.err, zk.ErrNotEmpty):
			return unavailable(out.err, "remove", unknown)
		}
		unknown = unknown || out.unknown
		if store.Pause(ctx, firstPause) != nil {
			return unavailable(out.err, "remove", unknown)
		}
	}
}

// hasLease reports whether an entry has been renewed, as far as that is easily told.
// If it is wrong the removal is refused first, and with it all that share its
// transaction. So an entry that is old enough for it, and was not renewed here, is
// looked at.
func (m *remover) hasLease(ctx context.Context, e *lock.Entry) bool {
	if !fresh(e) || m.leases.made(keyOf(e)) {
		return true
	}
	if time.Since(e.EnqueuedAt) < e.TTL/4 {
		return false
	}
	_, err := onLink(ctx, m.calls, get(m.root.lease(keyOf(e), e.Handle)))
	return err == nil
}

// attempt writes the removal, adapted to what there is.
func (m *remover) attempt(ctx context.Context, r *removal) outcome {
	for {
		out := m.commits.do(ctx, m.removeWrite(r))
		if !m.adapt(ctx, r, out) {
			return out
		}
	}
}

// adapt makes a removal that was refused fit what there is: a lease of which this
// replica did not know, or what somebody did to our nodes by hand. A lease is no
// reason to go on if there must not be one.
func (m *remover) adapt(ctx context.Context, r *removal, out outcome) bool {
	if m.unmark(r, out) {
		return true
	}
	if out.err == nil || out.op < 0 || out.op >= len(r.paths) {
		return false
	}
	path := r.paths[out.op]
	switch {
	case errors.Is(out.err, zk.ErrNoNode) && out.op > 0:
		m.log.Error("a node of an entry is missing, which nobody but us should delete", "path", path)
		r.paths = slices.Delete(r.paths, out.op, out.op+1)
		return true
	case errors.Is(out.err, zk.ErrNotEmpty):
		children, err := onLink(ctx, m.calls, func(c *zk.Conn) ([]string, error) {
			children, _, err := c.Children(path)
			return children, err
		})
		for _, child := range children {
			if full := path + "/" + child; !m.takeAlong(r, out.op, full) {
				return false
			}
		}
		if errors.Is(err, zk.ErrNoAuth) {
			m.reportStuck(path)
		}
		return err == nil || errors.Is(err, zk.ErrNoNode) // somebody else was faster, as the next attempt finds
	case errors.Is(out.err, zk.ErrNoAuth):
		m.reportStuck(path)
	}
	return false
}

// unmark makes a removal that was refused go without the mark of its key, if that is
// what is missing.
func (m *remover) unmark(r *removal, out outcome) bool {
	if r.mark == "" || out.op != len(r.paths) || !errors.Is(out.err, zk.ErrNoNode) {
		return false
	}
	m.reportMarkGone(r)
	return true
}

func (m *remover) reportMarkGone(r *removal) {
	m.report(r.mark, "what is known of a key was deleted, which nobody but us should do")
	r.mark = ""
}

// reportStuck tells that a node stays, and with it its entry.
func (m *remover) reportStuck(path string) {
	m.report(path, "a node cannot be deleted, as an ACL shuts this server out, and blocks its lock: restore the ACL or delete the node")
}

// takeAlong has the removal delete a node first that is below an entry's. The lease of
// another entry of the same key, which is made with that, shows whose the nodes are.
func (m *remover) takeAlong(r *removal, before int, path string) bool {
	switch {
	case slices.Contains(r.paths, path):
		return true
	case path == r.lease && r.version == noLease:
		return false
	case path != r.lease && !fresh(r.entry) && namesLease(path):
		m.log.Warn("an entry has a lease below it that is not its own, and stays", "path", path)
		return false
	case path != r.lease:
		m.log.Error("an entry has a node below it that is not ours, which goes with it", "path", path)
	}
	r.paths = slices.Insert(r.paths, before, path)
	return true
}

// checkNumber finds that e is not the entry that was written, if that can be
// told. The path of a lease that has a handle is never used twice, so what was read
// of it once is true for ever, and a server that lags behind knows nothing rather
// than something wrong; then the removal itself decides.
func (m *remover) checkNumber(ctx context.Context, e *lock.Entry) error {
	known := m.feed.entry(keyOf(e))
	switch {
	case known != nil && known.Handle == e.Handle && known.Number == e.Number:
		return nil
	case fresh(e) && known == nil:
		return nil // there is no other
	case fresh(e): // a greater fence floor was given, and the view has the new number
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

// removedBefore tells an entry that one of our own attempts removed from one
// that was gone, by the record that the removal left. If so many records came
// since that it may have been folded away, the attempt is believed to have done
// it.
func (m *remover) removedBefore(ctx context.Context, r *removal, unknown bool) error {
	if !unknown {
		return store.Lost("the entry is not in the queue")
	}
	l, err := m.calls.get(ctx)
	if err != nil {
		return unavailable(err, "confirm removal", true)
	}
	stat, err := m.barrierOn(ctx, l)
	if err != nil {
		return unavailable(err, "confirm removal", true)
	}
	if r.since.epoch != m.epoch.Load() {
		return nil
	}
	written, err := m.records(ctx, l, r.since.epoch, r.since.n, created(stat))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return unavailable(err, "confirm removal", true)
	}
	for _, w := range written {
		for _, c := range w.record.Changes {
			if c.Try == r.try {
				return nil
			}
		}
	}
	return store.Lost("the entry is not in the queue")
}
