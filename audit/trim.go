package audit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

const (
	// pace is the time between two rounds of trimming.
	pace = 10 * time.Minute

	// atOnce is how many records are deleted at the same time. One after the other they would
	// be deleted more slowly than actors can write them.
	atOnce = 16
)

// Run trims the log from time to time until ctx ends, while mine says that it is this
// replica's work. If two do it, no more is deleted than by one.
func (l *Log) Run(ctx context.Context, mine func() bool, log *slog.Logger) {
	for ctx.Err() == nil {
		if mine() {
			if err := l.Trim(ctx); err != nil && ctx.Err() == nil {
				log.Warn("the audit could not be trimmed; the server tries again", "error", err)
			}
		}
		_ = store.Pause(ctx, pace) // the loop ends with ctx
	}
}

// Trim deletes the records that are older than the retention, and no others.
func (l *Log) Trim(ctx context.Context) error {
	before := firstID(l.now().Add(-l.retention))
	for n := range int64(kinds) {
		gone, err := l.old(ctx, kindOf(n), before)
		if err != nil {
			return err
		}
		if err := l.delete(ctx, gone); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) old(ctx context.Context, kind, before string) (old []store.Record, err error) {
	for r, err := range store.EachRecord(
		ctx, l.records, store.RecordQuery{Kind: kind, Until: before},
	) {
		if err != nil {
			return nil, err
		}
		r.Value = nil
		old = append(old, r)
	}
	return old, nil
}

// delete deletes several records at once. Those that others deleted meanwhile are no error.
func (l *Log) delete(ctx context.Context, gone []store.Record) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, r := range gone {
		if ctx.Err() != nil {
			break // one failed, and so would the others
		}
		g.Go(func() error {
			err := l.records.Delete(ctx, r.RecordKey, r.Version)
			if errors.Is(err, lock.NotFound) || errors.Is(err, lock.Changed) {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}
