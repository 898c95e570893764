package quotas

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/store"
)

// maxAttempts is how often a change is tried that meets others of the same tenant.
const maxAttempts = 10

// State is what holds for a tenant by the store.
type State struct {
	Tenant    string
	Limits    *quota.Limits
	Defaults  *quota.Limits   // of this replica
	Overrides quota.Overrides // nil if nothing is set
	Version   uint64          // of what is set; 0 is nothing
	Damaged   bool            // what is set cannot be read, and the defaults hold

	By     string // who set it
	At     time.Time
	Reason string // in his words
}

// Change is what an operator wants to hold for a tenant.
type Change struct {
	Tenant    string
	Overrides quota.Overrides // all: a limit that is not there has its default
	Version   *uint64         // of what is to be replaced, 0 for nothing; nil replaces whatever is there
	Reason    string          // in the operator's words, or ""
	By        audit.Who
}

// Get returns what is set for a tenant, as the store has it now. Errors: not_found if it cannot
// have limits, store_unavailable.
func (b *Book) Get(ctx context.Context, tenant string) (*State, error) {
	if !settable(tenant) {
		return nil, lock.Errorf(lock.NotFound, "no tenant can have this name")
	}
	r, err := b.Records.Get(ctx, keyOf(tenant))
	switch {
	case errors.Is(err, lock.NotFound):
		return &State{Tenant: tenant, Limits: b.Defaults, Defaults: b.Defaults}, nil
	case err != nil:
		return nil, err
	}
	return b.stateOf(r), nil
}

func settable(tenant string) bool { return tenant != lock.OwnTenant && lock.ValidTenant(tenant) }

func (b *Book) stateOf(r store.Record) *State {
	out := &State{Tenant: r.Tenant, Limits: b.Defaults, Defaults: b.Defaults, Version: r.Version}
	s, bad := parse(r)
	if out.Damaged = bad != nil; out.Damaged {
		return out
	}
	out.Limits, out.Overrides = s.overrides.Over(b.Defaults), s.overrides
	out.By, out.At, out.Reason = s.by, s.at, s.reason
	return out
}

// Set has other limits hold for a tenant, at all replicas within a second. What the tenant has
// beyond them stays. It is put on record before. Errors: changed if not the version is there that was
// to be replaced, quota_exceeded, rate_limited; after an unknown outcome they may hold, and Get tells.
func (b *Book) Set(ctx context.Context, c Change) (*State, error) {
	if !settable(c.Tenant) {
		return nil, lock.Errorf(lock.NotFound, "no tenant can have this name")
	}
	made := &setting{overrides: c.Overrides, by: c.By.Subject, at: b.Now().UTC().Truncate(time.Millisecond), reason: c.Reason}
	if c.Overrides == nil {
		made.overrides = quota.Overrides{}
	}
	var out *State
	return out, b.change(ctx, c, audit.SetQuota, func(ctx context.Context, was *State) error {
		if was.Version == 0 && len(*b.set.Load()) >= MaxTenants {
			return &lock.Error{Code: lock.QuotaExceeded, Detail: "limits are set for too many tenants", RetryAfter: time.Minute}
		}
		put := store.RecordPut{RecordKey: keyOf(c.Tenant), Value: made.encode(), Version: was.Version}
		version, err := b.Records.Put(ctx, put)
		if err == nil {
			out = b.stateOf(store.Record{RecordKey: put.RecordKey, Value: put.Value, Version: version})
		}
		return err
	})
}

// Reset has the defaults hold for a tenant again. To repeat it is nothing. Errors as for [Book.Set].
func (b *Book) Reset(ctx context.Context, c Change) error {
	c.Overrides = nil
	return b.change(ctx, c, audit.ResetQuota, func(ctx context.Context, was *State) error {
		if was.Version == 0 {
			return nil
		}
		return b.Records.Delete(ctx, keyOf(c.Tenant), was.Version)
	})
}

// change does something to what is there, and puts it on record before. It begins anew when somebody
// else has changed it meanwhile, unless that is not to be.
func (b *Book) change(ctx context.Context, c Change, action string, do func(context.Context, *State) error) error {
	if wrong := lock.CheckExplanation(c.Reason); c.Reason != "" && wrong != "" {
		return lock.Invalid("reason", "%s", wrong)
	}
	noted := false
	for range maxAttempts {
		was, err := b.Get(ctx, c.Tenant)
		switch {
		case err != nil:
			return err
		case c.Version != nil && *c.Version != was.Version:
			return lock.Errorf(lock.Changed, "another version is there than was seen")
		case action == audit.ResetQuota && was.Version == 0:
			return nil
		}
		if !noted {
			if err := b.record(ctx, c, action); err != nil {
				return err
			}
			noted = true
		}
		// An operator who goes away must not leave it half done.
		err = do(context.WithoutCancel(ctx), was)
		if !errors.Is(err, lock.Changed) && !errors.Is(err, lock.NotFound) {
			return err
		}
	}
	return lock.Errorf(lock.Changed, "others change it all the time")
}

// record puts a change into the audit.
func (b *Book) record(ctx context.Context, c Change, action string) error {
	r := &audit.Record{
		Tenant: c.Tenant, By: c.By, Action: action, Reason: c.Reason, Result: audit.Set,
		Object: audit.Object{Locks: []string{}, Quota: c.Overrides.Named()},
	}
	if action == audit.ResetQuota {
		r.Result = audit.Reset
	}
	return b.Journal.Put(context.WithoutCancel(ctx), r)
}
