package etcd

import (
	"context"
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

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
	return engine.Narrow(ctx, s.timeout, n.try)
}

// narrowing is one call of Narrow.
type narrowing struct {
	store *Store
	entry *lock.Entry
	kept  []lock.Claim
}

// try makes an attempt.
func (n *narrowing) try(ctx context.Context) (*lock.Entry, error) {
	s, e := n.store, n.entry
	if refusal := s.trust.Refusal(); refusal != nil {
		return nil, refusal
	}
	if !e.Choosing() {
		return s.asItIs(ctx, e)
	}
	known := ownRecord{s.driver, s.meta}.unchanged() // before the number is read
	narrow, revision := e.Narrowed(n.kept), s.revision(e.Number)
	out, err := s.commits.Do(ctx, n.write(narrow, known))
	switch {
	case out.applied:
		narrow.Number = s.number(revision)
		return narrow, nil
	case err != nil && !isLeaseNotFound(err) && !isNoSpace(err):
		if refused(err) {
			err = unavailable(err, "narrow", false)
		}
		return nil, err
	}
	now, gone := s.asItIs(ctx, e)
	switch {
	case gone != nil || !now.Choosing():
		return now, gone
	case isNoSpace(err):
		return nil, unavailable(err, "narrow", false)
	}
	return nil, errors.Join(batch.ErrNotSent, err)
}

// write makes narrow of the entry, if it and the store's own record are as known. The committer
// would send it again under a new floor, but then the choice may be of a past that the store has
// lost.
// The put is before the deletions, so that feeds do not take these for the end of the entry, see
// [departures.left].
func (n *narrowing) write(narrow *lock.Entry, known []*pb.Compare) *write {
	s, e := n.store, n.entry
	home := s.primaryKey(e)
	p := &part{puts: true, compares: append(known, s.asKnown(e)), ops: []*pb.RequestOp{
		putOp(home, store.Encode(store.ValueOf(narrow)), e.Handle),
	}}
	w := &write{Tenant: e.Tenant, Must: true, Payload: p, Keys: []string{string(home)}}
	for _, c := range e.Claims {
		if !slices.Contains(narrow.Claims, c) {
			key := s.entryKey(e.Tenant, c.Name, e.ID)
			w.Keys = append(w.Keys, key)
			p.ops = append(p.ops, deleteOp([]byte(key)))
		}
	}
	return p.sized(w)
}

// asItIs reads the entry e, which may have been narrowed.
func (ks *keyspace) asItIs(ctx context.Context, e *lock.Entry) (*lock.Entry, error) {
	resp, err := ks.read(ctx, "check", &pb.RangeRequest{Key: ks.primaryKey(e)})
	if err != nil {
		return nil, unavailable(err, "check entry", false)
	}
	if !ks.isAt(e, resp.Kvs) {
		return nil, engine.ErrGone
	}
	return ks.decode(resp.Kvs[0])
}
