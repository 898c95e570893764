package subscription

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// MaxInAll bounds what is kept: each replica has a copy of all, of some 3 KiB each at most.
const MaxInAll = 10_000

// maxAttempts is how often a change is tried that meets others of the same record.
const maxAttempts = 10

// Config of [Subscriptions].
type Config struct {
	Records   store.RecordStore
	Keys      Keys
	Policy    *webhook.Policy
	Directory *Directory
	Limits    func(tenant string) *quota.Limits // of a tenant; nil is [quota.Standard] for each
	Now       func() time.Time                  // nil is time.Now
	Journal   *audit.Journal                    // records changes first; nil is one in Records
}

// Subscriptions are the use cases. Every call returns a *lock.Error. Of an unknown outcome,
// which the error says, what was asked for may be there: a subscription then is in the
// list.
type Subscriptions struct{ Config }

// New returns the use cases.
func New(c Config) *Subscriptions {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Limits == nil {
		standard := quota.Standard()
		c.Limits = func(string) *quota.Limits { return standard }
	}
	if c.Journal == nil {
		c.Journal = audit.NewJournal(c.Records, c.Now, nil)
	}
	return &Subscriptions{c}
}

// Create makes a subscription, and returns the secret that is not shown again.
// [lock.QuotaExceeded] says that there are too many.
func (s *Subscriptions) Create(
	ctx context.Context, who Actor, c Change,
) (*Subscription, webhook.Secret, error) {
	made, err := s.prepare(who.Principal, c)
	if err == nil {
		err = s.checkCount(ctx, who.Tenant)
	}
	if err == nil {
		err = s.record(ctx, who, audit.CreateWebhook, made)
	}
	if err == nil {
		put := store.RecordPut{RecordKey: made.key(), Value: made.encode()}
		made.Version, err = s.Records.Put(ctx, put)
		made.From = made.Version
	}
	if err == nil {
		err = s.checkPlace(ctx, made)
	}
	if err != nil {
		return nil, webhook.Secret{}, err
	}
	return made, s.current(made), nil
}

// prepare makes a subscription that is not stored yet.
func (s *Subscriptions) prepare(who *auth.Principal, c Change) (*Subscription, error) {
	if c.URL == nil {
		return nil, lock.Invalid("url", "is missing; send one such as https://example.com/hook")
	}
	if c.Locks == nil {
		all := allLocks
		c.Locks = &all
	}
	made := &Subscription{
		ID: newID(), Tenant: who.Tenant, By: who.Subject,
		Created: s.Now().UTC().Truncate(time.Millisecond), Rotation: Rotation{}.next(s.Now()),
	}
	return made, c.apply(made, s.Policy, who)
}

func newID() string {
	raw := make([]byte, lock.IDSize)
	_, _ = rand.Read(raw) // never fails: it ends the process rather
	return string(lock.IDOf(raw))
}

// recordsOf reads the records of a tenant. It may have more than its quota: some were made at the
// same moment at several replicas, or before its quota was lowered.
func (s *Subscriptions) recordsOf(
	ctx context.Context, tenant string,
) (all []store.Record, err error) {
	q := store.RecordQuery{Kind: Kind, Tenant: tenant}
	for record, err := range store.EachRecord(ctx, s.Records, q) {
		if err != nil {
			return nil, err
		}
		if all = append(all, record); len(all) >= 2*quota.Webhooks.Most() {
			break
		}
	}
	return all, nil
}

// checkCount returns an error if the tenant, or all together, have as many as they may.
func (s *Subscriptions) checkCount(ctx context.Context, tenant string) error {
	if s.Directory.count() >= MaxInAll {
		return errTooMany("the server has %d webhooks, and takes no more; delete one first", MaxInAll)
	}
	most := s.Limits(tenant)
	records, err := s.recordsOf(ctx, tenant)
	if err != nil {
		return err
	}
	if n := len(records); n >= most[quota.Webhooks] {
		return errTooManyOfTenant(most, n)
	}
	return nil
}

// checkPlace deletes the subscription again if others that were made at the same time are earlier,
// and as many as the tenant may have. The client may have disconnected by then.
func (s *Subscriptions) checkPlace(ctx context.Context, made *Subscription) error {
	ctx = context.WithoutCancel(ctx) // each call of the store ends by itself
	records, err := s.recordsOf(ctx, made.Tenant)
	if err != nil {
		return nil // it is there, and only this call knows its secret
	}
	before := 0
	for _, r := range records {
		from := r.Version
		if other, err := parse(r); err == nil {
			from = other.From
		}
		if from < made.From {
			before++
		}
	}
	most := s.Limits(made.Tenant)
	if before < most[quota.Webhooks] {
		return nil
	}
	err = s.Records.Delete(ctx, made.key(), made.Version)
	if err != nil && !errors.Is(err, lock.NotFound) {
		return err
	}
	return errTooManyOfTenant(most, before)
}

func errTooManyOfTenant(most *quota.Limits, n int) error {
	err := most.Exceeded(quota.Webhooks, n)
	err.RetryAfter = time.Minute
	return err
}

func errTooMany(format string, args ...any) *lock.Error {
	detail := fmt.Sprintf(format, args...)
	return &lock.Error{Code: lock.QuotaExceeded, Detail: detail, RetryAfter: time.Minute}
}

// Count returns how many subscriptions a tenant has, as this replica read them last.
func (s *Subscriptions) Count(tenant string) int { return s.Directory.countOf(tenant) }

// Get returns a subscription of the client's tenant: [lock.NotFound] if there is none,
// [lock.Forbidden] if it is about names that the client may not use.
func (s *Subscriptions) Get(
	ctx context.Context, who *auth.Principal, id string,
) (*Subscription, error) {
	r, err := s.read(ctx, who, id)
	if err != nil {
		return nil, err
	}
	found, bad := parse(r)
	switch {
	case bad != nil:
		return nil, errNone()
	case !may(who, found):
		return nil, errForbidden()
	}
	return found, nil
}

func (s *Subscriptions) read(
	ctx context.Context, who *auth.Principal, id string,
) (store.Record, error) {
	if !lock.ValidName(id) {
		return store.Record{}, errNone()
	}
	r, err := s.Records.Get(ctx, keyOf(who.Tenant, id))
	return r, unlessNone(err)
}

func errNone() error {
	return lock.Errorf(lock.NotFound, "there is no webhook with this id; "+"GET /webhooks lists them")
}

// unlessNone explains a [lock.NotFound].
func unlessNone(err error) error {
	if errors.Is(err, lock.NotFound) {
		return errNone()
	}
	return err
}

func errForbidden() error {
	return lock.Errorf(lock.Forbidden, "the webhook selects other lock names than the caller may "+
		"use; use a credential that covers them")
}

// List returns the tenant's subscriptions that the caller may see, the oldest first.
func (s *Subscriptions) List(ctx context.Context, who *auth.Principal) ([]*Subscription, error) {
	records, err := s.recordsOf(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	var all []*Subscription
	for _, r := range records {
		if one, bad := parse(r); bad == nil && may(who, one) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *Subscription) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// All returns the subscriptions of a tenant, or with "" of all, that the caller may see, by tenant
// and id: as this replica read them last, which may be a second ago. It is [lock.StoreUnavailable]
// before it has.
func (s *Subscriptions) All(who *auth.Principal, tenant string) ([]*Subscription, error) {
	known, ok, _ := s.Directory.Current()
	if !ok {
		return nil, &lock.Error{
			Code:       lock.StoreUnavailable,
			Detail:     "this replica has not read the webhooks yet; retry, here or at another",
			RetryAfter: time.Second,
		}
	}
	var all []*Subscription
	for _, one := range known {
		if (tenant == "" || one.Tenant == tenant) && may(who, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// Update changes what c says, and returns what has come of it. paused, said to be false,
// sets one going again that was disabled.
func (s *Subscriptions) Update(
	ctx context.Context, who Actor, id string, c Change,
) (*Subscription, error) {
	if c.empty() {
		return s.Get(ctx, who.Principal, id)
	}
	return s.revise(ctx, who.Principal, id, revision{
		change: func(next *Subscription) error { return c.apply(next, s.Policy, who.Principal) },
		record: func(next *Subscription) error { return s.recordChange(ctx, who, &c, next) },
	})
}

// Rotate gives a subscription a new secret, which is not shown again. Those before it sign
// too, until [Overlap] after they were replaced.
func (s *Subscriptions) Rotate(
	ctx context.Context, who Actor, id string,
) (*Subscription, webhook.Secret, error) {
	revised, err := s.revise(ctx, who.Principal, id, revision{
		change: func(next *Subscription) error {
			next.Rotation = next.next(s.Now())
			return nil
		},
		record: func(next *Subscription) error { return s.record(ctx, who, audit.RotateWebhook, next) },
	})
	if err != nil {
		return nil, webhook.Secret{}, err
	}
	return revised, s.current(revised), nil
}

// revision is what becomes of a subscription, and how that is put on record.
type revision struct {
	change func(*Subscription) error
	record func(next *Subscription) error
}

// revise writes what a revision makes of a subscription. It puts that on record once, before the
// first write. What changes nothing is neither on record nor written: a client could repeat it
// without end.
func (s *Subscriptions) revise(
	ctx context.Context, who *auth.Principal, id string, r revision,
) (next *Subscription, err error) {
	err = retry(func(first bool) error {
		was, err := s.Get(ctx, who, id)
		if err != nil {
			return err
		}
		next = was.clone()
		if err := r.change(next); err != nil || bytes.Equal(next.encode(), was.encode()) {
			return err
		}
		if first {
			if err := r.record(next); err != nil {
				return err
			}
		}
		next.Earlier = append(slices.Clone(was.Earlier), was.Version)
		next.Earlier = next.Earlier[max(0, len(next.Earlier)-maxEarlier):]
		put := store.RecordPut{RecordKey: next.key(), Value: next.encode(), Version: was.Version}
		next.Version, err = s.Records.Put(ctx, put)
		return unlessNone(err)
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// retry repeats a change that met others of the same record.
func retry(change func(first bool) error) error {
	for attempt := range maxAttempts {
		if err := change(attempt == 0); !errors.Is(err, lock.Changed) {
			return err
		}
	}
	return lock.Errorf(lock.Changed, "other changes came first, several times; retry")
}

// Delete ends a subscription. A client that may use all names may delete what cannot be read.
func (s *Subscriptions) Delete(ctx context.Context, who Actor, id string) error {
	return retry(func(first bool) error {
		r, err := s.read(ctx, who.Principal, id)
		if err != nil {
			return err
		}
		was, bad := parse(r)
		if bad != nil {
			was = &Subscription{ID: id, Locks: allLocks}
		}
		if bad != nil && who.Locks != nil || !may(who.Principal, was) {
			return errForbidden()
		}
		if first {
			if err := s.record(ctx, who, audit.DeleteWebhook, was); err != nil {
				return err
			}
		}
		return unlessNone(s.Records.Delete(ctx, r.RecordKey, r.Version))
	})
}

// current returns the secret that signs first.
func (s *Subscriptions) current(of *Subscription) webhook.Secret {
	return s.Keys.Of(of, s.Now())[0]
}

func keyOf(tenant, id string) store.RecordKey {
	return store.RecordKey{Kind: Kind, Tenant: tenant, ID: id}
}

func (s *Subscription) key() store.RecordKey { return keyOf(s.Tenant, s.ID) }
