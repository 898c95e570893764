package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

const (
	// maxResumed is how many revisions a feed may begin in the past: a minute of a busy store. With
	// more to come the feed would be late for long.
	maxResumed = 200_000

	// maxInterrupted is the same for one that was interrupted while requests rely on it.
	maxInterrupted = 100_000

	// resumeTime is for how long a feed may try to go on where it was, and be behind. Then it begins
	// with what there is: that requests are answered matters more than what is told of the past.
	resumeTime = 30 * time.Second
)

// Resume has the feed begin at an earlier number, if the store still knows all that happened
// since and that is not too much: so it is told again. It has to be called before
// [Store.Watch].
func (s *Store) Resume(number uint64) { s.resume.Store(number) }

// listEarlier reads the entries as they were where the feed is to begin. Revision is 0 if that is now:
// then what happened until now is a gap, if anything did. Errors are those after which it can be tried
// again.
func (s *Store) listEarlier(ctx context.Context, g *gaps, at int64) (revision int64, read picture, err error) {
	if revision = g.earlier(at, time.Now()); revision == 0 {
		return 0, read, nil
	}
	page := newPager(s.prefix + entriesDir)
	page.request.Revision = revision
	err = s.eachKey(ctx, page, func(kv *mvccpb.KeyValue) { read.add(kv, s.primaryAt(kv)) })
	switch {
	case errors.Is(err, errCompacted), isCompacted(err):
		s.log.Info("what happened before the feed begins cannot be told: the store has forgotten it", "revision", revision)
		return 0, picture{}, nil
	case err != nil:
		return 0, picture{}, err
	}
	s.log.Info("the feed begins in the past, to tell what happened since", "revision", revision, "behind", at-revision)
	return revision, read, nil
}

// earlier returns the revision at which the feed is to begin, 0 for now: where it was interrupted, or is
// to be resumed. By another fence floor, as before this one was given, what was told has other numbers, and may be
// another past; in a store that has lost its own it is.
func (g *gaps) earlier(at int64, now time.Time) int64 {
	floor, number, most := g.store.trust.Floor(), g.told, uint64(maxInterrupted)
	if number == 0 {
		number, most = g.store.resume.Load(), maxResumed
	} else if g.floor != floor {
		return 0
	}
	if g.store.trust.Refusal() != nil || number <= floor || number >= uint64(at)+floor || uint64(at)+floor-number > most {
		return 0
	}
	if int64(number-floor) < g.store.meta.floorGiven() {
		return 0
	}
	if g.behind.IsZero() {
		g.setBehind(now)
	}
	if now.Sub(g.behind) > resumeTime {
		return 0
	}
	return int64(number - floor)
}

// beginNow has the feed begin with what there is: after what was told it would meet again what made it
// start over.
func (g *gaps) beginNow() {
	g.told = 0
	g.store.resume.Store(0)
}
