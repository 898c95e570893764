package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
)

// errForgotten says that etcd has forgotten what was written since a call began.
var errForgotten = errors.New("whether the entry was written is forgotten")

// exclude makes sure that no attempt of the call has written the entry, which has a fresh
// id, and that none will any more. It returns the entry if it is there. If it was written
// and has gone since, the error is [lock.Lost] with the reason.
func (j *joining) exclude(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	found, err := j.find(ctx)
	if found != nil || err != nil {
		return found, err
	}
	for _, l := range j.open { // one that commits now is as good as removed: nobody knows of it
		if !slices.Contains(j.revoking, l) {
			j.revoking = append(j.revoking, l)
		}
		if err := j.store.leases.revoke(ctx, l); err != nil {
			return nil, err
		}
	}
	now, err := j.store.newest(ctx)
	if err != nil {
		return nil, err
	}
	gone, err := j.store.written(ctx, j.entry, j.since, now)
	if gone != nil {
		return nil, gone
	}
	if err == nil {
		j.open = nil
	}
	return nil, err
}

// written tells whether e, which is not there, was, between two revisions, and if so why it
// has gone.
func (s *Store) written(ctx context.Context, e *lock.Entry, since, upTo int64) (gone *lock.Error, err error) {
	key, joined, left := string(s.primaryKey(e)), false, int64(0)
	err = s.past(ctx, key, since+1, upTo, func(ev *mvccpb.Event) {
		switch {
		case string(ev.Kv.Key) != key:
		case ev.Type == mvccpb.PUT:
			joined = true
		default:
			left = ev.Kv.ModRevision
		}
	})
	if !joined || err != nil {
		return nil, err
	}
	gone = lock.LostBecause(lock.Expired)
	gone.Detail = "the entry was removed before its request was answered"
	err = s.past(ctx, s.prefix+endedDir, left, left, func(ev *mvccpb.Event) {
		if ev.Type != mvccpb.PUT || ev.Kv.ModRevision != left {
			return
		}
		for _, end := range s.decodeEnds(ev.Kv.Key, ev.Kv.Value) {
			if end.ID == e.ID && end.Tenant == e.Tenant {
				gone.Reason = end.Reason
			}
		}
	})
	if err != nil {
		gone.Reason = lock.Unknown
	}
	return gone, nil
}

// past tells what was written below a prefix from one revision up to another, which are
// those of the store, and perhaps some of what came then.
func (s *Store) past(ctx context.Context, prefix string, from, upTo int64, tell func(*mvccpb.Event)) error {
	if from > upTo {
		return nil // no watch could say so
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	w := s.conn.watch(ctx, prefix, from)
	ask := time.NewTicker(askAgain)
	defer ask.Stop()
	for {
		select {
		case m, ok := <-w.messages:
			switch {
			case !ok:
				return errors.Join(ctx.Err(), errFeedEnded)
			case errors.Is(m.err, errCompacted), isCompacted(m.err):
				return errors.Join(errForgotten, m.err)
			case m.err != nil:
				return m.err
			}
			for _, ev := range m.events {
				tell(ev)
			}
			if m.revision >= upTo {
				return nil
			}
		case <-ask.C:
			w.ask()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// askAgain is how long a watch that says nothing is left alone.
const askAgain = 20 * time.Millisecond
