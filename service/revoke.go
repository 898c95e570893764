package service

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
)

// Records are the store's small records, as far as the service needs them.
type Records interface {
	Get(ctx context.Context, k store.RecordKey) (store.Record, error)
	Put(ctx context.Context, p store.RecordPut) (uint64, error)
}

// RevokeRequest asks for the end of exactly one entry, which an operator has seen.
type RevokeRequest struct {
	Tenant string
	Name   string // the lock, unless it is a set; "" is any, with Holder
	Set    bool
	Holder string // the entry must have this holder; "" is any
	ID     lock.ID

	// Fence is the entry's number: its fence if it holds, or its later fence if it waits.
	Fence uint64

	Reason string            // in the operator's words
	By     audit.Who         // the operator
	May    func(string) bool // reports whether the operator may use a name; nil allows all
}

// Revoked is an entry that an operator ended.
type Revoked struct {
	Entry  *lock.Entry
	Held   bool // it held rather than waited, as this replica saw it
	Record *audit.Record
}

// Revoke ends an entry, whether it holds or waits, and writes the audit record in the same write.
// The client learns of it at its next request. The next entry holds at once.
//
// Errors: changed if the id belongs to another entry than the operator saw; lock_lost with the
// reason if it is gone; forbidden if the operator may not use its names; rate_limited. Repeating
// it after an unknown outcome is safe.
func (x *Entries) Revoke(ctx context.Context, req RevokeRequest) (*Revoked, error) {
	var known bool
	return x.revoke(ctx, req, &known)
}

// revoke is Revoke with a flag: known reports that the view has everything that the operator can
// have seen. revoke waits for that if needed and then sets known.
func (x *Entries) revoke(ctx context.Context, req RevokeRequest, known *bool) (*Revoked, error) {
	ctx, span := x.span(ctx, "service.Revoke")
	defer span.End()
	if wrong := lock.CheckExplanation(req.Reason); wrong != "" {
		return nil, lock.Invalid("reason", "%s", wrong)
	}
	found, err := x.seen(ctx, req, known)
	if err != nil {
		return nil, err
	}
	if err := req.check(found.Entry); err != nil {
		return nil, err
	}
	done := &Revoked{Entry: found.Entry, Held: found.State == view.Held}
	done.Record = req.record(done)
	put, err := x.Journal.Admit(done.Record)
	if err != nil {
		return nil, err
	}
	note := &lock.Note{By: req.By.Subject, Reason: req.Reason}
	x.ending.note(trace.SpanFromContext(ctx), found.Entry.ID)
	// As with Release: the removal must finish even if the operator disconnects.
	err = x.Store.RemoveAndPut(context.WithoutCancel(ctx), found.Entry, lock.Revoked, note, put)
	x.Journal.Tell(ctx, done.Record, err)
	if err != nil {
		return nil, x.whyLost(ctx, found.Entry, err)
	}
	x.Metrics.Revoked(ctx, string(req.By.Scope))
	return done, nil
}

// seen finds the entry of a request in the view, or in the store if the view is stale. It reports
// nothing about another tenant's entry, not even its end.
func (x *Entries) seen(ctx context.Context, req RevokeRequest, known *bool) (view.Status, error) {
	found := x.view.Status(req.ID, 0)
	if !*known && (found.Entry == nil || found.Entry.Tenant != req.Tenant ||
		found.Entry.Number < req.Fence) {
		if err := x.settle(ctx, true); err != nil {
			return view.Status{}, err
		}
		*known = true
		found = x.view.Status(req.ID, 0)
	}
	switch {
	case found.Entry == nil:
		return found, x.ended(req.ID, x.view.Reasons.EndOf(req.Tenant, req.ID))
	case found.Entry.Tenant != req.Tenant:
		return found, lock.LostBecause(lock.Unknown)
	}
	return found, nil
}

// check returns why an entry is not the one that the operator saw, or is outside the operator's
// scope.
func (r *RevokeRequest) check(e *lock.Entry) error {
	for _, c := range e.Claims {
		if r.May != nil && !r.May(c.Name) {
			return lock.Errorf(lock.Forbidden, "the caller is limited to other lock names; "+
				"use a credential that covers them")
		}
	}
	named := func(c lock.Claim) bool { return c.Name == r.Name }
	switch {
	case r.Set && !e.Set:
		return lock.Errorf(lock.NotFound, "the entry is of one lock, and no set; "+
			"revoke it at /admin/locks")
	case r.Name != "" && !slices.ContainsFunc(e.Claims, named):
		return lock.Errorf(lock.NotFound, "the entry is of another lock; "+
			"read this lock again for its entries")
	case r.Name != "" && e.Set:
		return lock.Errorf(lock.NotFound, "the entry is a set; revoke it as a whole, at /admin/locksets")
	case e.Number != r.Fence:
		return lock.Errorf(lock.Changed, "the entry has another fence than was seen; "+
			"read the lock again before you revoke")
	case r.Holder != "" && e.Holder != r.Holder:
		return lock.Errorf(lock.Changed, "the entry has another holder than was seen; "+
			"read the lock again before you revoke")
	}
	return nil
}

func (r *RevokeRequest) record(of *Revoked) *audit.Record {
	e := of.Entry
	made := &audit.Record{
		Tenant: e.Tenant, By: r.By, Action: audit.RevokeEntry, Reason: r.Reason, Result: audit.Revoked,
		Object: audit.Object{Entry: e.ID, Holder: e.Holder, Fence: e.Number, Held: of.Held},
	}
	if e.Set {
		made.Action = audit.RevokeSet
	}
	for _, c := range e.Claims {
		made.Object.Locks = append(made.Object.Locks, c.Name)
	}
	return made
}

// RevokeAll revokes entries one after the other and returns each outcome. If the store does not
// answer, it does not try the rest: they have no outcome. It asks the store at most once for all
// entries that the view does not have, because the operator saw all of them before the request.
func (x *Entries) RevokeAll(ctx context.Context, all []RevokeRequest) []RevokeOutcome {
	out, known := make([]RevokeOutcome, 0, len(all)), false
	for _, req := range all {
		if ctx.Err() != nil {
			break
		}
		done, err := x.revoke(ctx, req, &known)
		if out = append(out, RevokeOutcome{done, err}); errors.Is(err, lock.StoreUnavailable) {
			break
		}
	}
	return out
}

// RevokeOutcome is the outcome for one of several requests: the revoked entry or the error.
type RevokeOutcome struct {
	*Revoked
	Err error
}
