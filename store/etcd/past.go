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

// errForgotten means that etcd has compacted what was written since a call began.
var errForgotten = errors.New("whether the entry was written is forgotten")

// exclude makes sure that no attempt of the call has written the entry, which has a fresh id, and
// that none will. It returns the entry if it exists. If the entry was written and has gone since,
// the error is [lock.Lost] with the reason. If it was written too late to be found before its
// lease was revoked, the error is [store.ErrTakenBack].
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

// revokeOpen revokes the leases of the attempts with unknown outcomes, after the entry was not
// found. An attempt that commits now counts as removed, because no client knows of it.
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

// written returns whether e, which is missing, existed between two revisions, and if so since
// when and why it has gone.
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

// whyGone returns why e has gone. It was removed at a revision before its call was answered.
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

// maxPasts bounds the concurrent reads of the history. They follow first attempts without an
// answer, which can be all of a replica's calls.
const maxPasts = 16

// past reports what was written below a prefix between two revisions of the store, and perhaps
// some later writes.
func (ks *keyspace) past(
	ctx context.Context, prefix string, from, upTo int64, tell func(*mvccpb.Event),
) error {
	if from > upTo {
		return nil // no watch could report that
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

// readPast reports what was written to a range of keys, as past does, until ctx ends. The
// revisions must exist.
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

// askAgain is the time after which a silent watch is asked for progress.
const askAgain = 20 * time.Millisecond
