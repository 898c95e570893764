package closures

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// CloseRequest asks that no new entry joins some locks of a tenant.
type CloseRequest struct {
	Tenant      string
	Locks       string // a [lock.Pattern]
	Until       time.Time
	Reason      string // by the operator
	Description string
	By          audit.Who
}

// Close closes locks: once it returns, no entry joins them at any replica. It writes the audit
// record first. Errors: invalid_request, quota_exceeded, rate_limited; store_unavailable also for
// a damaged record. After an unknown outcome the closure may exist; the list shows it.
func (b *Book) Close(ctx context.Context, req CloseRequest) (*lock.Closure, error) {
	c, err := b.newClosure(req)
	if err != nil {
		return nil, err
	}
	if err := b.full(ctx, c); err != nil {
		return nil, err
	}
	if err := b.record(ctx, c, req.By, audit.CloseLocks, audit.Closed, req.Reason); err != nil {
		return nil, err
	}
	c.Number, _, err = b.change(ctx, c.Tenant, func(all []*lock.Closure) []*lock.Closure {
		if slices.ContainsFunc(all, c.Is) { // an earlier attempt of this call
			return all
		}
		return append(slices.Clone(all), c)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// maxChanges bounds the attempts at a change that others are faster than.
const maxChanges = 20

// change replaces a tenant's closures by what edit makes of them, and tries again if another
// change was faster. It returns the version of the record that has the result. changed is false if
// edit left them as they were. It does not end with ctx, because the outcome would then be harder
// to learn.
func (b *Book) change(
	ctx context.Context, tenant string, edit func([]*lock.Closure) []*lock.Closure,
) (version uint64, changed bool, err error) {
	ctx = context.WithoutCancel(ctx)
	for range maxChanges {
		was, err := b.read(ctx, tenant)
		if err != nil {
			return 0, false, err
		}
		next := edit(was.all)
		if len(next) == len(was.all) {
			return was.version, changed, nil
		}
		version, err = b.write(ctx, store.RecordPut{
			RecordKey: store.ClosuresKey(tenant), Version: was.version, Frees: len(next) < len(was.all),
		}, next)
		if !errors.Is(err, lock.Changed) && !errors.Is(err, lock.NotFound) {
			return version, true, err
		}
		var faster *lock.Error
		changed = changed || errors.As(err, &faster) && faster.OutcomeUnknown
	}
	return 0, false, &lock.Error{
		Code: lock.StoreUnavailable, Detail: "others change the tenant's closures all the time; retry",
		RetryAfter: time.Second,
	}
}

// read returns a tenant's closures, no older than the call. A damaged record is an error: a change
// would write over it, and the part that can be read may admit what the rest keeps out.
func (b *Book) read(ctx context.Context, tenant string) (ofTenant, error) {
	r, err := b.Records.Get(ctx, store.ClosuresKey(tenant))
	switch {
	case errors.Is(err, lock.NotFound):
		return ofTenant{}, nil
	case err != nil:
		return ofTenant{}, err
	}
	of, err := parse(r)
	if err != nil {
		return ofTenant{}, errDamaged(tenant, err)
	}
	return of, nil
}

func errDamaged(tenant string, why error) error {
	return &lock.Error{
		Code: lock.StoreUnavailable, RetryAfter: time.Minute, Cause: why,
		Detail: "the record of the closures of tenant " + tenant + " cannot be read: an operator " +
			"deletes it in the store, or runs the version that wrote it",
	}
}

// write puts the closures, or deletes their record if there are none, and returns its version.
func (b *Book) write(
	ctx context.Context, p store.RecordPut, all []*lock.Closure,
) (version uint64, err error) {
	if len(all) == 0 {
		return 0, b.Records.Delete(ctx, p.RecordKey, p.Version)
	}
	if p.Value = encode(all); len(p.Value) > store.MaxRecordValue {
		return 0, errFull() // with those that are over and not removed yet
	}
	return b.Records.Put(ctx, p)
}

// newClosure checks a request and makes the closure of it.
func (b *Book) newClosure(req CloseRequest) (*lock.Closure, error) {
	now := b.Now().UTC().Truncate(time.Millisecond)
	locks, err := lock.ParseNamePattern(req.Locks)
	switch {
	case req.Tenant == lock.OwnTenant || !lock.ValidTenant(req.Tenant):
		return nil, lock.Invalid("tenant", "must be one whose locks can be closed")
	case err != nil:
		return nil, lock.Invalid("locks", "must be a pattern of lock names, with at most one star")
	case !req.Until.After(now) || req.Until.Sub(now) > lock.MaxClosing:
		return nil, lock.Invalid("until", "must be within the next %g hours", lock.MaxClosing.Hours())
	}
	if wrong := lock.CheckDescription(req.Description); wrong != "" {
		return nil, lock.Invalid("description", "%s", wrong)
	}
	if wrong := lock.CheckExplanation(req.Reason); wrong != "" {
		return nil, lock.Invalid("reason", "%s", wrong)
	}
	id := make([]byte, lock.IDSize)
	_, _ = rand.Read(id) // never fails
	return &lock.Closure{
		ID: lock.IDOf(id), Tenant: req.Tenant, Locks: locks, Since: now,
		Until:  req.Until.UTC().Truncate(time.Millisecond),
		Reason: req.Reason, Description: req.Description, By: req.By.Subject,
	}, nil
}

// List returns the current closures, the oldest first, as the store has them now. tenant "" is
// all.
func (b *Book) List(ctx context.Context, tenant string) (all []*lock.Closure, err error) {
	now := b.Now()
	for r, err := range store.EachRecord(
		ctx, b.Records, store.RecordQuery{Kind: store.ClosuresKind, Tenant: tenant},
	) {
		if err != nil {
			return nil, err
		}
		of, _ := parse(r) // the follower logs what is wrong
		for _, c := range of.all {
			if now.Before(c.Until) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, (*lock.Closure).Compare)
	return all, nil
}

// full returns why a tenant may not have one more closure, or nil.
func (b *Book) full(ctx context.Context, c *lock.Closure) error {
	all, err := b.List(ctx, "")
	if err != nil {
		return err
	}
	of := []*lock.Closure{c}
	for _, other := range all {
		if other.Tenant == c.Tenant {
			of = append(of, other)
		}
	}
	if len(of) <= lock.MaxClosures && len(all) < maxInAll && len(encode(of)) <= maxBytes {
		return nil
	}
	return errFull()
}

func errFull() error {
	return &lock.Error{
		Code: lock.QuotaExceeded, RetryAfter: time.Minute,
		Detail: fmt.Sprintf(
			"a tenant has at most %d closures at a time, with %d KiB of texts, and all have %d; "+
				"delete one first", lock.MaxClosures, maxBytes>>10, maxInAll,
		),
	}
}

// ErrUnread is the error before the first reading of the closures.
func ErrUnread() error {
	return &lock.Error{
		Code: lock.StoreUnavailable, Detail: "this replica has not read yet which locks are closed; " +
			"retry, here or at another",
		RetryAfter: time.Second,
	}
}

// OpenRequest asks for the end of a closure.
type OpenRequest struct {
	ID lock.ID
	// reports whether the operator may end a closure of these locks
	May    func(tenant, locks string) bool
	Reason string // by the operator; may be ""
	By     audit.Who
}

// Open ends a closure. It writes the audit record first. Errors: not_found, rate_limited;
// store_unavailable also for a damaged record.
func (b *Book) Open(ctx context.Context, req OpenRequest) error {
	c, err := b.find(ctx, req)
	if err != nil {
		return err
	}
	if err := b.record(ctx, c, req.By, audit.OpenLocks, audit.Opened, req.Reason); err != nil {
		return err
	}
	_, changed, err := b.change(ctx, c.Tenant, func(all []*lock.Closure) []*lock.Closure {
		return slices.DeleteFunc(slices.Clone(all), c.Is)
	})
	if err == nil && !changed {
		return errNoClosure()
	}
	return err
}

func (b *Book) find(ctx context.Context, req OpenRequest) (*lock.Closure, error) {
	all, err := b.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.ID == req.ID && req.May(c.Tenant, c.Locks.String()) {
			return c, nil
		}
	}
	return nil, errNoClosure()
}

func errNoClosure() error {
	return lock.Errorf(lock.NotFound, "there is no such closure; "+"GET /admin/closures lists them")
}

// record writes an operator's action to the audit, if the closures can be changed.
func (b *Book) record(
	ctx context.Context, c *lock.Closure, by audit.Who, action, result, reason string,
) error {
	if _, err := b.read(ctx, c.Tenant); err != nil {
		return err
	}
	return b.Journal.Put(context.WithoutCancel(ctx), &audit.Record{
		Tenant: c.Tenant, By: by, Action: action, Reason: reason, Result: result,
		Object: audit.Object{Locks: []string{c.Locks.String()}, Entry: c.ID, Until: &c.Until},
	})
}
