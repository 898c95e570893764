package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// errForgotten says that etcd has forgotten what was written since a call began.
var errForgotten = errors.New("whether the entry was written is forgotten")

// exclude makes sure that no attempt of the call has written the entry, which has a fresh
// id, and that none will any more. It returns the entry if it is there. If it was written
// and has gone since, the error is [lock.Lost] with the reason, or [store.ErrTakenBack] if it
// was written too late to be found before its lease was revoked.
func (j *joining) exclude(ctx context.Context) (*lock.Entry, error) {
	ctx, cancel := context.WithDeadline(ctx, j.due)
	defer cancel()
	found, err := j.find(ctx)
	if found != nil || err != nil {
		return found, err
	}
	if err := j.revokeOpen(ctx); err != nil {
		return nil, err
	}
	now, err := hedged(ctx, j.store.newest)
	if err != nil {
		return nil, err
	}
	joined, gone, err := j.store.written(ctx, j.entry, j.since, now)
	switch {
	case err != nil:
		return nil, err
	case gone != nil && joined > j.absent && gone.Reason == lock.Expired:
		j.open = nil
		return nil, store.ErrTakenBack
	case gone != nil:
		return nil, gone
	}
	j.open = nil
	return nil, nil
}

// revokeOpen revokes the leases of the attempts whose outcomes are not known, after the entry
// was not found. One that commits now is as good as removed: nobody knows of it.
func (j *joining) revokeOpen(ctx context.Context) error {
	if !slices.ContainsFunc(j.open, func(l int64) bool { return slices.Contains(j.revoking, l) }) {
		j.absent = j.looked
	}
	for _, l := range j.open {
		if !slices.Contains(j.revoking, l) {
			j.revoking = append(j.revoking, l)
		}
		_, err := hedged(
			ctx, func(ctx context.Context) (int64, error) { return l, j.store.leases.revoke(ctx, l) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// written tells whether e, which is not there, was, between two revisions, and if so since which
// and why it has gone.
func (ks *keyspace) written(
	ctx context.Context, e *lock.Entry, since, upTo int64,
) (joined int64, gone *lock.Error, err error) {
	key, left := string(ks.primaryKey(e)), int64(0)
	err = ks.past(ctx, key, since+1, upTo, func(ev *mvccpb.Event) {
		switch {
		case string(ev.Kv.Key) != key:
		case ev.Type == mvccpb.PUT:
			joined = ev.Kv.ModRevision
		default:
			left = ev.Kv.ModRevision
		}
	})
	if joined == 0 || err != nil {
		return 0, nil, err
	}
	return joined, ks.whyGone(ctx, e, left), nil
}

// whyGone tells why e, which was removed at a revision before its call was answered, has gone.
func (ks *keyspace) whyGone(ctx context.Context, e *lock.Entry, left int64) *lock.Error {
	gone := lock.LostBecause(lock.Expired)
	gone.Detail = "the entry was removed before its request was answered"
	err := ks.past(ctx, ks.prefix+endedDir, left, left, func(ev *mvccpb.Event) {
		if ev.Type != mvccpb.PUT || ev.Kv.ModRevision != left {
			return
		}
		for _, end := range ks.decodeEnds(ev.Kv.Key, ev.Kv.Value) {
			if end.ID == e.ID && end.Tenant == e.Tenant {
				gone.Reason = end.Reason
			}
		}
	})
	if err != nil {
		gone.Reason = lock.Unknown
	}
	return gone
}

// maxPasts is how many read the past at once: calls whose first attempts had no answer, which
// can be all calls of a replica.
const maxPasts = 16

// past tells what was written below a prefix from one revision up to another, which are
// those of the store, and perhaps some of what came then.
func (ks *keyspace) past(
	ctx context.Context, prefix string, from, upTo int64, tell func(*mvccpb.Event),
) error {
	if from > upTo {
		return nil // no watch could say so
	}
	select {
	case ks.readingPast <- struct{}{}:
		defer func() { <-ks.readingPast }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return ks.readPast(ctx, prefix, string(prefixEnd(prefix)), from, upTo, tell)
}

// readPast tells what was written to a range of keys, as past does, until ctx ends. There must be
// such revisions.
func (ks *keyspace) readPast(
	ctx context.Context, first, end string, from, upTo int64, tell func(*mvccpb.Event),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := ks.conn.watchPast(ctx, first, end, from)
	ask := time.NewTicker(askAgain)
	defer ask.Stop()
	for {
		select {
		case m, ok := <-w.messages:
			switch {
			case !ok:
				return errors.Join(ctx.Err(), errFeedEnded)
			case isCompacted(m.err):
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
