package quota

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// maxAttempts bounds the attempts of a change that meets others of the same tenant.
const maxAttempts = 10

// State is what holds for a tenant by the store.
type State struct {
	Tenant    string
	Limits    *Limits
	Defaults  *Limits   // of this replica
	Overrides Overrides // nil if nothing is set
	Version   uint64    // of what is set; 0 is nothing
	Damaged   bool      // what is set cannot be read, and the defaults hold

	By     string // the operator
	At     time.Time
	Reason string
}

// Change is what an operator sets for a tenant.
type Change struct {
	Tenant    string
	Overrides Overrides // all: a limit that is missing has its default
	Version   *uint64   // that it replaces, 0 for nothing; nil replaces any
	Reason    string    // in the operator's words, or ""
	By        audit.Who
}

// setting is what is stored for a tenant.
type setting struct {
	Limits Overrides `json:"limits"`
	By     string    `json:"by"`
	At     int64     `json:"at_ms"`
	Reason string    `json:"reason,omitempty"`
}

const recordID = "limits"

func keyOf(tenant string) store.RecordKey {
	return store.RecordKey{Kind: Kind, Tenant: tenant, ID: recordID}
}

// parse reads a setting, or says why the record is none.
func parse(r store.Record) (*setting, error) {
	var s setting
	if r.ID != recordID {
		return nil, errors.New("its id is not that of a quota")
	}
	if err := json.Unmarshal(r.Value, &s); err != nil {
		return nil, errors.New("it is not the JSON of a quota: " + err.Error())
	}
	if s.Limits == nil {
		return nil, errors.New("it has no limits")
	}
	return &s, nil
}

// Get returns what is set for a tenant, as the store has it now. Errors: not_found if it cannot
// have limits, store_unavailable.
func (b *Book) Get(ctx context.Context, tenant string) (*State, error) {
	if tenant == lock.OwnTenant || !lock.ValidTenant(tenant) {
		return nil, lock.Errorf(lock.NotFound, "no tenant can have this name; "+
			"check the tenant in the path")
	}
	r, err := b.Records.Get(ctx, keyOf(tenant))
	if err != nil && !errors.Is(err, lock.NotFound) {
		return nil, err
	}
	out := &State{Tenant: tenant, Limits: b.Defaults, Defaults: b.Defaults}
	if err == nil {
		b.read(out, r)
	}
	return out, nil
}

func (b *Book) read(into *State, r store.Record) {
	into.Version = r.Version
	s, bad := parse(r)
	if into.Damaged = bad != nil; into.Damaged {
		return
	}
	into.Limits, into.Overrides = s.Limits.Over(b.Defaults), s.Limits
	into.By, into.At, into.Reason = s.By, time.UnixMilli(s.At).UTC(), s.Reason
}

// Set sets other limits for a tenant, which all replicas apply within a second. What the tenant has
// beyond them stays. The audit has it before. Errors: changed if another version is there,
// quota_exceeded, rate_limited. After an unknown outcome the limits may hold; Get returns them.
func (b *Book) Set(ctx context.Context, c Change) (out *State, err error) {
	if c.Overrides == nil {
		c.Overrides = Overrides{}
	}
	value := store.Encode(
		setting{Limits: c.Overrides, By: c.By.Subject, At: time.Now().UnixMilli(), Reason: c.Reason},
	)
	err = b.change(ctx, c, audit.SetQuota, func(ctx context.Context, was *State) error {
		if was.Version == 0 && len(*b.set.Load()) >= MaxTenants {
			return &lock.Error{
				Code:       lock.QuotaExceeded,
				Detail:     "limits are set for too many tenants; reset those of another tenant first",
				RetryAfter: time.Minute,
			}
		}
		version, err := b.Records.Put(
			ctx, store.RecordPut{RecordKey: keyOf(c.Tenant), Value: value, Version: was.Version},
		)
		if err == nil {
			out = was
			b.read(out, store.Record{RecordKey: keyOf(c.Tenant), Value: value, Version: version})
		}
		return err
	})
	return out, err
}

// Reset restores the defaults for a tenant. Repeating it is not an error. Errors as for [Book.Set].
func (b *Book) Reset(ctx context.Context, c Change) error {
	c.Overrides = nil
	return b.change(ctx, c, audit.ResetQuota, func(ctx context.Context, was *State) error {
		return b.Records.Delete(ctx, keyOf(c.Tenant), was.Version)
	})
}

// change puts a change into the audit and makes it. It starts again if another change came between,
// unless the caller named the version that it replaces.
func (b *Book) change(
	ctx context.Context,
	c Change,
	action string,
	do func(context.Context, *State) error,
) error {
	if wrong := lock.CheckExplanation(c.Reason); c.Reason != "" && wrong != "" {
		return lock.Invalid("reason", "%s", wrong)
	}
	for attempt := range maxAttempts {
		was, err := b.Get(ctx, c.Tenant)
		switch {
		case err != nil:
			return err
		case c.Version != nil && *c.Version != was.Version:
			return lock.Errorf(lock.Changed, "the quota has another version than was seen; "+
				"read it again, then repeat the change")
		case action == audit.ResetQuota && was.Version == 0:
			return nil
		}
		// A client that goes away must not leave it half done.
		ctx := context.WithoutCancel(ctx)
		if attempt == 0 {
			if err := b.record(ctx, c, action); err != nil {
				return err
			}
		}
		if err = do(ctx, was); !errors.Is(err, lock.Changed) && !errors.Is(err, lock.NotFound) {
			return err
		}
	}
	return lock.Errorf(lock.Changed, "other changes came first, several times; retry")
}

// record puts a change into the audit.
func (b *Book) record(ctx context.Context, c Change, action string) error {
	r := &audit.Record{
		Tenant: c.Tenant, By: c.By, Action: action, Reason: c.Reason, Result: audit.Set,
		Object: audit.Object{Locks: []string{}, Quota: c.Overrides},
	}
	if action == audit.ResetQuota {
		r.Result = audit.Reset
	}
	return b.Journal.Put(ctx, r)
}
