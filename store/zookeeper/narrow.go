package zookeeper

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// Narrow implements store.Store.
func (s *Store) Narrow(
	ctx context.Context, e *lock.Entry, kept []lock.Claim,
) (now *lock.Entry, err error) {
	n := &narrowing{store: s, entry: e, kept: kept}
	return engine.Narrow(ctx, s.reader.timeout, n.try)
}

// narrowing is one call of Narrow.
type narrowing struct {
	store *Store
	entry *lock.Entry
	kept  []lock.Claim
	again bool // the feed may not have what an attempt has found
}

// try makes an attempt. The record of the narrowing has the zxid at which the entry joined, so the
// feed must have the entry. What it has is also the answer if the entry was narrowed before; then
// it must be as of now.
func (n *narrowing) try(ctx context.Context) (*lock.Entry, error) {
	s, k := n.store, keyOf(n.entry)
	known := s.meta.check() // before the number is read
	if refusal := s.reader.trust.Refusal(); refusal != nil {
		return nil, refusal
	}
	e, joined, ok := s.feed.placed(k)
	if n.again || !ok || e == nil || !e.Choosing() {
		err := s.catchUp(ctx)
		if err = errors.Join(err, ctx.Err()); err != nil { // it also returns when ctx ends
			return nil, errors.Join(batch.ErrNotSent, err)
		}
		e, joined, ok = s.feed.placed(k)
	}
	switch {
	case !ok:
		return nil, errors.Join(batch.ErrNotSent, errBehind)
	case e == nil || e.Number != n.entry.Number || e.Handle != n.entry.Handle:
		return nil, engine.ErrGone
	case !e.Choosing():
		return e, nil
	}
	n.again = true
	narrow := e.Narrowed(n.kept)
	out := s.commits.do(ctx, s.narrowWrite(e, narrow, joined, known))
	switch {
	case out.err == nil:
		narrow.Number = s.reader.number(joined)
		return narrow, nil
	case out.unknown:
		return nil, out.err
	case errors.Is(out.err, zk.ErrBadVersion), errors.Is(out.err, zk.ErrNoNode):
	case answered(out.err):
		return nil, unavailable(out.err, "narrow", false)
	}
	return nil, errors.Join(batch.ErrNotSent, out.err)
}

// narrowWrite makes narrow of e, which joined at the zxid, if it was not narrowed before and the
// store's own record is as known. The committer compares with what is known by then, but under a
// new floor the choice may be of a past that the store has lost.
func (s *Store) narrowWrite(e, narrow *lock.Entry, joined int64, known any) *write {
	k, v := keyOf(e), valueOf(narrow, e.Handle)
	data := store.Encode(v)
	p := &part{
		change: change{Tenant: k.tenant, Lock: k.lock, ID: k.id, Joined: v, Narrowed: joined},
		ops:    append([]any{known}, s.reader.root.witnesses(e)...),
	}
	p.ops = append(p.ops, &zk.SetDataRequest{
		Path: s.reader.root.primary(k), Data: data, Version: anyVersion,
	})
	kept := s.reader.root.secondaries(k, narrow.Claims)
	for _, path := range s.reader.root.secondaries(k, e.Claims) {
		if !slices.Contains(kept, path) {
			p.ops = append(p.ops, &zk.DeleteRequest{Path: path, Version: anyVersion})
		}
	}
	return &write{
		Tenant: e.Tenant, Keys: []string{k.conflict()}, Must: true, Payload: p, Ops: len(p.ops),
		Bytes: 3*len(data) + opSize*(len(p.ops)+1), // as of a join
	}
}
