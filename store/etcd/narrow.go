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
	return engine.Narrow(ctx, s.timeout, func(ctx context.Context) (*lock.Entry, error) {
		return s.tryNarrow(ctx, e, kept)
	})
}

// tryNarrow makes an attempt.
func (s *Store) tryNarrow(
	ctx context.Context, e *lock.Entry, kept []lock.Claim,
) (*lock.Entry, error) {
	if refusal := s.trust.Refusal(); refusal != nil {
		return nil, refusal
	}
	if !e.Choosing() {
		return s.asItIs(ctx, e)
	}
	known := ownRecord{s.driver, s.meta}.unchanged() // before the number is read
	narrow, revision := e.Narrowed(kept), s.revision(e.Number)
	out, err := s.commits.Do(ctx, s.narrowWrite(e, narrow, known))
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

// narrowWrite makes narrow of e, if e and the store's own record are as known. The committer would
// send it again under a new floor, but then the choice may be of a past that the store has lost.
// The put is before the deletions, so that feeds do not take these for the end of the entry, see
// [departures.left].
func (s *Store) narrowWrite(e, narrow *lock.Entry, known []*pb.Compare) *write {
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
