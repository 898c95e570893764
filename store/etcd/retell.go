package etcd

import (
	"context"
	"errors"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/store"
)

const (
	// slice is how many revisions one watch reads of the past, and slicesAtOnce how many watches do so at
	// a time. etcd gives a watch that begins in the past 1 000 revisions every 100 ms, and for each of these
	// parts it reads all that was written from there on until now, under a lock that every write needs
	// (mvcc/watchable_store.go, syncWatchers and watchBatchMaxRevs): one watch over 100 000 revisions takes
	// a minute, in which little is written. Watches that each take one such part take one reading together.
	slice        = 1000
	slicesAtOnce = 20

	// maxSliceBytes is how much is kept of what the watches read at a time. With more, fewer of them read; with more in
	// one slice nothing is told of it.
	maxSliceBytes = 64 << 20
)

// errMuchInPast says that what happened takes more memory than there is for it.
var errMuchInPast = errors.New("what happened since is too large to be told")

// retell tells what happened after a revision, until a watch can do the rest at once, and returns up to
// where it did. Until then it gives up what it cannot read in resumeTime.
func (s *Store) retell(ctx context.Context, g *gaps, at int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	for atOnce := int64(slicesAtOnce); ; {
		newest, err := s.newestOnce(ctx)
		if err != nil || newest-at <= slice {
			return at, err
		}
		for at < newest {
			upTo := min(newest, at+slice*atOnce)
			err := s.retellPart(ctx, g, at+1, upTo)
			switch {
			case errors.Is(err, errMuchInPast) && atOnce > 1: // so that a list which takes long comes to an end
				atOnce /= 2
				continue
			case err != nil:
				return at, err
			}
			at = upTo
		}
	}
}

// retellPart reads some revisions by slices, and tells them in order.
func (s *Store) retellPart(ctx context.Context, g *gaps, from, upTo int64) error {
	parts, err := s.readSlices(ctx, from, upTo)
	if err != nil {
		return err
	}
	var pace store.Retelling
	for i, events := range parts {
		m := watchMessage{events: events, revision: min(upTo, from+int64(i+1)*slice-1)}
		s.trust.Saw(m.revision)
		if err := s.hand(g, m); err != nil {
			return err
		}
		s.feedAt.Store(m.revision)
		if err := pace.Pace(ctx, len(events)); err != nil {
			return err
		}
	}
	return nil
}

// readSlices reads what the feed tells of some revisions, a slice of them each. Small records, which can be
// most of what is written, and of which it tells nothing, are behind all other keys.
func (s *Store) readSlices(ctx context.Context, from, upTo int64) ([][]*mvccpb.Event, error) {
	parts := make([][]*mvccpb.Event, (upTo-from)/slice+1)
	var bytes atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		first := from + int64(i)*slice
		last := min(upTo, first+slice-1)
		all.Go(func() error {
			err := s.readPast(ctx, s.prefix, s.prefix+recordsDir, first, last, func(ev *mvccpb.Event) {
				if ev.Kv.ModRevision <= last && bytes.Add(int64(len(ev.Kv.Key)+len(ev.Kv.Value))) <= s.sliceBytes {
					parts[i] = append(parts[i], ev)
				}
			})
			if err == nil && bytes.Load() > s.sliceBytes {
				return errMuchInPast
			}
			return err
		})
	}
	return parts, all.Wait()
}
