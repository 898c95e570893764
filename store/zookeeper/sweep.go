package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
)

// sweep removes what is left of an entry that has lost its lease, or is gone
// without a record, by somebody's hand. An entry that has a lease after all stays.
func (m *remover) sweep(ctx context.Context, e *lock.Entry) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	r := m.remains(ctx, e)
	if r == nil {
		return // it is tried again, unless the feed tells that it left
	}
	m.log.Error("an entry has no lease, or is gone, by another hand than ours; it is removed",
		"tenant", e.Tenant, "lock", e.Name(), "entry", string(e.ID))
	for {
		out := m.commits.do(ctx, m.removeWrite(r))
		switch {
		case out.err == nil || len(r.paths) == 0:
			return
		case m.unmark(r, out):
		case errors.Is(out.err, zk.ErrNoNode) && out.op < len(r.paths) && r.paths[out.op] != r.primary:
			r.paths = slices.Delete(r.paths, out.op, out.op+1)
		case errors.Is(out.err, zk.ErrNoNode) || !m.adapt(ctx, r, out):
			return // it is tried again
		}
	}
}

// remains plans to remove what is left of an entry, or returns nil if there is nothing
// that surely is that entry's. An entry whose end was recorded needs no other record, and
// the same path and mark may be in use by a later one of the same key. So the feed has to
// have everything up to a moment after its nodes were looked at, and still the entry.
func (m *remover) remains(ctx context.Context, e *lock.Entry) *removal {
	if !m.feed.shows(e, 0) {
		return nil
	}
	l, err := m.calls.get(ctx)
	if err != nil {
		return nil
	}
	if _, err := m.barrierOn(ctx, l); err != nil {
		return nil
	}
	r := m.newRemoval(e, false, noLease, lock.Expired)
	r.czxid = m.zxid(e.Number)
	if m.ownMark(ctx, l, r) != nil {
		return nil
	}
	n, err := do(ctx, l, get(r.primary))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		r.paths = r.paths[1:]
	case errors.Is(err, zk.ErrNoAuth): // nobody may look; it is deleted only if it has no lease
	case err != nil, n.stat.Czxid != r.czxid:
		return nil
	}
	after, err := m.barrierOn(ctx, l)
	if err != nil || !m.feed.reaches(ctx, after.Mzxid) || !m.feed.shows(e, after.Mzxid) {
		return nil
	}
	return r
}

// ownMark has the removal replace the mark of its key only as it is now, and not at all
// if that is of another entry or tells of an end already.
func (m *remover) ownMark(ctx context.Context, l *link, r *removal) error {
	if r.mark == "" {
		return nil
	}
	n, err := do(ctx, l, get(r.mark))
	if errors.Is(err, zk.ErrNoNode) {
		m.reportMarkGone(r)
		return nil
	}
	if err != nil {
		return err
	}
	var known mark
	if bad := json.Unmarshal(n.data, &known); bad == nil && (known.Reason != "" || known.Lock != r.entry.Name()) {
		r.mark = ""
	}
	r.marked = n.stat.Version
	return nil
}

// shows reports whether the feed is current, has reached the zxid, and has the entry.
func (f *feed) shows(e *lock.Entry, zxid int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.entries.byKey[keyOf(e)]
	return f.current && f.zxid >= zxid && known != nil && known.Number == e.Number && known.Handle == e.Handle
}
