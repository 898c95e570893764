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

// Close closes locks at every replica, within a second. It writes the audit record first. Errors:
// invalid_request, quota_exceeded, rate_limited. After an unknown outcome the closure may exist;
// the list shows it.
func (b *Book) Close(ctx context.Context, req CloseRequest) (*lock.Closure, error) {
	c, err := b.newClosure(req)
	if err != nil {
		return nil, err
	}
	if err := b.full(ctx, req.Tenant); err != nil {
		return nil, err
	}
	if err := b.record(ctx, c, req.By, audit.CloseLocks, audit.Closed, req.Reason); err != nil {
		return nil, err
	}
	// The write must finish even if the operator disconnects.
	put := store.RecordPut{RecordKey: keyOf(c), Value: encode(c)}
	c.Number, err = b.Records.Put(context.WithoutCancel(ctx), put)
	if err != nil {
		return nil, err
	}
	return c, nil
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
		ctx, b.Records, store.RecordQuery{Kind: Kind, Tenant: tenant},
	) {
		if err != nil {
			return nil, err
		}
		if c, err := parse(r); err == nil && now.Before(c.Until) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, (*lock.Closure).Compare)
	return all, nil
}

// full returns why the tenant may have no more closures, or nil.
func (b *Book) full(ctx context.Context, tenant string) error {
	all, err := b.List(ctx, "")
	if err != nil {
		return err
	}
	of := 0
	for _, c := range all {
		if c.Tenant == tenant {
			of++
		}
	}
	if of < lock.MaxClosures && len(all) < maxInAll {
		return nil
	}
	return &lock.Error{
		Code: lock.QuotaExceeded, RetryAfter: time.Minute,
		Detail: fmt.Sprintf(
			"a tenant has at most %d closures at a time, and all have %d; "+
				"delete one first", lock.MaxClosures, maxInAll,
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

// Open ends a closure. It writes the audit record first. Errors: not_found, rate_limited.
func (b *Book) Open(ctx context.Context, req OpenRequest) error {
	c, err := b.find(ctx, req)
	if err != nil {
		return err
	}
	if err := b.record(ctx, c, req.By, audit.OpenLocks, audit.Opened, req.Reason); err != nil {
		return err
	}
	err = b.Records.Delete(context.WithoutCancel(ctx), keyOf(c), c.Number)
	if errors.Is(err, lock.NotFound) || errors.Is(err, lock.Changed) {
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
	return lock.Errorf(lock.NotFound, "there is no such closure; "+
		"GET /admin/closures lists them")
}

// record writes an operator's action to the audit.
func (b *Book) record(
	ctx context.Context, c *lock.Closure, by audit.Who, action, result, reason string,
) error {
	return b.Journal.Put(context.WithoutCancel(ctx), &audit.Record{
		Tenant: c.Tenant, By: by, Action: action, Reason: reason, Result: result,
		Object: audit.Object{Locks: []string{c.Locks.String()}, Entry: c.ID, Until: &c.Until},
	})
}
