package audit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Putter is what a journal needs of the store's small records.
type Putter interface {
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
}

// Journal puts actions on record and into the log, within each actor's share.
type Journal struct {
	records Putter
	now     func() time.Time
	log     *slog.Logger
	shares  shares
}

// NewJournal returns a journal. now is nil for the clock, log to log nothing.
func NewJournal(records Putter, now func() time.Time, log *slog.Logger) *Journal {
	if now == nil {
		now = time.Now
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Journal{records: records, now: now, log: log}
}

// Put puts an action on record before it is done. The error is [lock.RateLimited] if the share
// of the actor is used up, or the store's; then the action must not be done.
func (j *Journal) Put(ctx context.Context, r *Record) error {
	put, err := j.Admit(r)
	if err != nil {
		return err
	}
	_, err = j.records.Put(ctx, put)
	if failed, is := errors.AsType[*lock.Error](err); is && failed.OutcomeUnknown {
		failed = new(*failed)
		failed.OutcomeUnknown = false // the record may be there, but the action was not done
		return failed
	}
	j.Tell(ctx, r, err)
	return err
}

// Admit counts a record for its actor and returns how it is written, for a caller that writes
// it together with the action and then calls Tell. The error is [lock.RateLimited].
func (j *Journal) Admit(r *Record) (store.RecordPut, error) {
	r.At = j.now()
	put := r.Put()
	return put, j.shares.take(r, len(put.Value), r.At)
}

// Tell logs a record that was written, or that may have been.
func (j *Journal) Tell(ctx context.Context, r *Record, err error) {
	failed, is := errors.AsType[*lock.Error](err)
	unknown := is && failed.OutcomeUnknown
	if err != nil && !unknown {
		return
	}
	j.log.LogAttrs(ctx, slog.LevelInfo, "audit", slog.Bool("audit", true), slog.String("id", r.ID),
		slog.String("tenant", r.Tenant), slog.Bool("outcome_unknown", unknown), slog.Any(
			"record", json.RawMessage(r.value()),
		))
}
