package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// noticeMark begins the id under which a notice has its mark, which no entry has.
const noticeMark = "notice:"

// Notify implements store.Store.
func (s *Store) Notify(ctx context.Context, n *lock.Notice, of *lock.Entry) error {
	if err := store.CheckNotice(n, of); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for unknown := false; ; {
		if refusal := s.trust.Refusal(); refusal != nil {
			refusal.OutcomeUnknown = unknown
			return refusal
		}
		out := s.commits.do(ctx, s.noticeWrite(n, of))
		unknown = unknown || out.unknown
		switch {
		case out.err == nil:
			return s.trust.Believe()
		case errors.Is(out.err, zk.ErrNodeExists):
			return nil
		case errors.Is(out.err, zk.ErrNoNode) && of != nil && out.op == 0:
			return store.Lost("the entry is not in the queue")
		case errors.Is(out.err, zk.ErrNoNode):
			_ = s.makeNoticeShard(ctx, n) // the next attempt tells whether it worked
		case errors.Is(out.err, lock.Overloaded):
			return out.err
		case answered(out.err):
			return unavailable(out.err, "notify", unknown)
		}
		if store.Pause(ctx, firstPause) != nil {
			return unavailable(out.err, "notify", unknown)
		}
	}
}

// noticeWrite makes the node of a notice that belongs to an entry, if that is there, or the
// mark of another one.
func (s *Store) noticeWrite(n *lock.Notice, of *lock.Entry) *write {
	v, id := store.NoticeOf(n), lock.ID(noticeMark+n.ID)
	p := &part{change: change{
		Tenant: n.Tenant, Lock: n.Locks[0], ID: id, Reason: store.Noticed, At: time.Now().UnixMilli(), Keyed: of == nil, Notice: v,
	}}
	w := &write{Tenant: n.Tenant, Payload: p, Keys: []string{key{tenant: n.Tenant, id: id}.conflict()}}
	data := store.Encode(v)
	if of == nil {
		p.ops = []any{s.create(s.root.mark(n.Tenant, id), store.Encode(mark{Lock: n.Locks[0], Reason: store.Noticed, At: p.change.At}))}
	} else {
		w.Keys = append(w.Keys, keyOf(of).conflict())
		p.ops = []any{
			&zk.CheckVersionRequest{Path: s.remover.witnesses([]*lock.Entry{of})[0], Version: anyVersion},
			s.create(s.root.notice(n.Tenant, n.ID), data),
		}
	}
	w.Ops, w.Bytes = len(p.ops), 3*len(data)+opSize*(len(p.ops)+1) // the record is the log's data too
	return w
}

func (s *Store) makeNoticeShard(ctx context.Context, n *lock.Notice) error {
	if n.Of == "" {
		return s.ensure(ctx, s.calls, s.root.keyShard(n.Tenant, lock.ID(noticeMark+n.ID)), nil)
	}
	return s.ensure(ctx, s.calls, s.root.shardOfNotice(n.Tenant+","+n.ID), nil)
}

// noticed applies a change that is a notice.
func (f *feed) noticed(changes []store.Change, c change, w written) []store.Change {
	n, err := noticeIn(c, f.reader.number(w.zxid))
	if err != nil {
		f.reader.report(recordPath(f.reader.root.log(f.epoch), w.n), "a notice cannot be read and is passed over", "error", err)
		return changes
	}
	f.attached.Add(n)
	return append(changes, store.Change{Number: n.Number, Notice: n})
}

// noticeIn returns the notice that a change is, which was written at the number.
func noticeIn(c change, number uint64) (*lock.Notice, error) {
	return c.Notice.Notice(c.Tenant, strings.TrimPrefix(string(c.ID), noticeMark), number)
}

// listNotices reads the notices that have nodes.
func (r *reader) listNotices(ctx context.Context, l *link) ([]*lock.Notice, error) {
	shards, err := children(ctx, l, r.root.notices())
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil // an older version made the store's own nodes
	}
	var all []*lock.Notice
	for _, shard := range shards {
		names, err := children(ctx, l, r.root.notices()+"/"+shard)
		if err != nil {
			return nil, err
		}
		read := make([]*lock.Notice, len(names))
		err = inParallel(len(names), func(i int) (err error) {
			read[i], err = r.readNotice(ctx, l, r.root.notices()+"/"+shard, names[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	return slices.DeleteFunc(all, func(n *lock.Notice) bool { return n == nil }), err
}

// readNotice reads one notice; nil is one that is gone, or that nobody can read.
func (r *reader) readNotice(ctx context.Context, l *link, shard, name string) (*lock.Notice, error) {
	found, err := do(ctx, l, get(shard+"/"+name))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, nil
	case errors.Is(err, zk.ErrNoAuth):
	case err != nil:
		return nil, err
	}
	var v store.NoticeValue
	if err == nil {
		err = json.Unmarshal(found.data, &v)
	}
	if err == nil {
		tenant, id, _ := strings.Cut(name, ",")
		var n *lock.Notice
		if n, err = v.Notice(tenant, id, r.number(found.stat.Czxid)); err == nil {
			return n, nil
		}
	}
	r.report(shard+"/"+name, "a notice cannot be read and is passed over", "error", err)
	return nil, nil
}

// attach has the notices that were listed, and those that the log told of meanwhile. The
// caller holds mu.
func (f *feed) attach(listed []*lock.Notice) {
	told := f.attached
	f.attached = store.Attached{}
	for _, n := range listed {
		if f.reader.zxid(n.Number) <= f.listing.from {
			f.attached.Add(n)
		}
	}
	for _, notices := range told {
		for _, n := range notices {
			f.attached.Add(n)
		}
	}
}

// attachedTo returns the notices of the entries, in order; those of others are deleted. The
// caller holds mu.
func (f *feed) attachedTo(entries []*lock.Entry) []*lock.Notice {
	var all []*lock.Notice
	for _, notices := range f.attached {
		all = append(all, notices...)
	}
	there, gone := store.Belonging(all, entries)
	f.spent.add(gone)
	f.attached = store.Attached{}
	for _, n := range there {
		f.attached.Add(n)
	}
	return there
}

// maxSpentNotices bounds the notices that are yet to be deleted. Those beyond are when they
// are listed next.
const maxSpentNotices = 10_000

// spentNotices are those whose entries went. Each replica deletes them; none is ever written
// again, as its transaction checks that its entry is there.
type spentNotices struct {
	mu  sync.Mutex
	all []*lock.Notice
}

func (x *spentNotices) add(notices []*lock.Notice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = append(x.all, notices[:min(len(notices), maxSpentNotices-len(x.all))]...)
}

func (x *spentNotices) take() []*lock.Notice {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.all
	x.all = nil
	return all
}

// deleteSpent deletes the notices whose entries went. What fails is tried again with the
// next upkeep.
func (u *upkeep) deleteSpent(ctx context.Context) error {
	spent := u.feed.spent.take()
	if len(spent) == 0 {
		return nil
	}
	l, err := u.chores.get(ctx)
	if err == nil {
		err = inParallel(len(spent), func(i int) error {
			return u.archive.deleteAll(ctx, l, []string{u.root.notice(spent[i].Tenant, spent[i].ID)})
		})
	}
	if err != nil {
		u.feed.spent.add(spent)
	}
	return err
}
