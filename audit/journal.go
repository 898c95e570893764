package audit

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Putter is what a journal needs of the store's small records.
type Putter interface {
	Put(ctx context.Context, p store.RecordPut) (version uint64, err error)
}

// Journal puts on record what is about to be done, at no more than a pace for each tenant.
type Journal struct {
	records Putter
	now     func() time.Time

	// Who uses webhooks must not keep operators from acting by using up a pace, nor anybody from
	// deleting a webhook: of that there is no more than of what was made.
	operators, users, deletions Pace
}

// NewJournal returns a journal. now is nil for the clock.
func NewJournal(records Putter, now func() time.Time) *Journal {
	if now == nil {
		now = time.Now
	}
	return &Journal{records: records, now: now, users: Pace{ofUsers: true}, deletions: Pace{ofUsers: true}}
}

// Put puts something on record before it is done. The error is [lock.RateLimited] if the tenant of
// whoever does it does too much, or the store's; then it must not be done.
func (j *Journal) Put(ctx context.Context, r *Record) error {
	r.At = j.now()
	if err := j.paceOf(r).Take(r.By.Tenant, r.At); err != nil {
		return err
	}
	_, err := j.records.Put(ctx, r.Put())
	var failed *lock.Error
	if errors.As(err, &failed) && failed.OutcomeUnknown { // the record may be there, but what it tells of was not done
		failed = new(*failed)
		failed.OutcomeUnknown = false
		return failed
	}
	return err
}

func (j *Journal) paceOf(r *Record) *Pace {
	switch {
	case !r.byUser():
		return &j.operators
	case r.Action == DeleteWebhook:
		return &j.deletions
	}
	return &j.users
}
