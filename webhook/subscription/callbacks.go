package subscription

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
)

// RotateCallback makes the secret that signs a tenant's callbacks, or a new one, and returns
// it; it is not shown again. Those before it sign too, until [Overlap] after they were
// replaced. It signs for all locks, so the caller must not be limited to some.
func (s *Subscriptions) RotateCallback(
	ctx context.Context, who Actor,
) (secret webhook.Secret, err error) {
	if who.Locks != nil {
		return secret, lock.Errorf(lock.Forbidden,
			"the callback secret is for all locks, and the caller is limited to some; "+
				"use a credential without that limit")
	}
	err = retry(func(first bool) error {
		next, err := s.nextCallbackSecret(ctx, who.Tenant)
		if err == nil && first {
			err = s.record(ctx, who, audit.RotateWebhook, nil)
		}
		if err != nil {
			return err
		}
		put := store.RecordPut{
			RecordKey: callbackKey(who.Tenant), Value: next.encode(), Version: next.Version,
		}
		if _, err = s.Records.Put(ctx, put); errors.Is(err, lock.NotFound) {
			return lock.Errorf(lock.Changed, "it was deleted meanwhile; retry")
		}
		secret = s.Keys.ofCallbacks(who.Tenant, next.Rotation, s.Now())[0]
		return err
	})
	if err != nil {
		secret = webhook.Secret{}
	}
	return secret, err
}

// nextCallbackSecret returns the record to write, with the version of what it replaces.
func (s *Subscriptions) nextCallbackSecret(
	ctx context.Context, tenant string,
) (*callbackSecret, error) {
	now := s.Now().UTC().Truncate(time.Millisecond)
	r, err := s.Records.Get(ctx, callbackKey(tenant))
	if errors.Is(err, lock.NotFound) {
		if s.Directory.callbackCount() >= MaxInAll {
			return nil, errTooMany("%d tenants have a callback secret, and no more may; "+
				"use a webhook instead", MaxInAll)
		}
		return &callbackSecret{Tenant: tenant, Created: now, Rotation: Rotation{}.next(now)}, nil
	}
	if err != nil {
		return nil, err
	}
	was, bad := parseCallback(r)
	if bad != nil {
		detail := "the record of the callback secret cannot be read"
		return nil, &lock.Error{Code: lock.Internal, Detail: detail, Cause: bad}
	}
	was.Rotation = was.next(now)
	return was, nil
}

// Callback returns the callback for an entry's grant, for a URL that the policy allows.
// It is [lock.NoCallbackSecret] if the tenant has no secret to sign with.
func (s *Subscriptions) Callback(ctx context.Context, tenant, url string) (*lock.Callback, error) {
	if err := s.Policy.CheckURL("callback_url", url); err != nil {
		return nil, err
	}
	id, err := s.CallbackSecret(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return &lock.Callback{URL: url, Secret: id}, nil
}

// CallbackSecret returns the id of what signs a tenant's callbacks: [lock.NoCallbackSecret]
// if there is nothing. The store is asked only if this replica does not know of it: a
// tenant that has one keeps it.
func (s *Subscriptions) CallbackSecret(ctx context.Context, tenant string) (id string, err error) {
	if s.Directory.hasCallbackSecret(tenant) {
		return callbackID, nil
	}
	_, err = s.Records.Get(ctx, callbackKey(tenant))
	if errors.Is(err, lock.NotFound) {
		return "", lock.Errorf(lock.NoCallbackSecret, "callbacks are signed, and the tenant has no "+
			"secret for that; POST /webhooks/callback-secret/rotate makes one")
	}
	return callbackID, err
}
