package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/singleflight"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// admissions are what admits entries: for a version of a tenant's closures, the version of the
// shard of their record. Every write of such a record raises that, also of one that did not exist,
// which ZooKeeper cannot check otherwise.
type admissions struct {
	driver  *driver
	reading singleflight.Group // a burst of joins reads once

	mu sync.Mutex
	of map[string]admission // by tenant
}

// admission was read with the floor, because a restored store has other closures in a shard of the
// same version.
type admission struct {
	closures, floor uint64
	check           *zk.CheckVersionRequest
}

// maxAdmissions bounds the tenants that are kept.
const maxAdmissions = 4096

// known returns the check that admits e, or nil if the closures are not known as e's caller has
// seen them.
func (a *admissions) known(e *lock.Entry) *zk.CheckVersionRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of[e.Tenant]
	if of.closures != e.Admitted || of.floor != a.driver.trust.Floor() {
		return nil
	}
	return of.check
}

// admit sets the check that admits the entry of w, which is not sent yet. It reads the closures if
// they are not known. The error is [engine.ErrConflict] if they are not as the entry's caller has
// seen them. Meanwhile w counts as pending, so a burst stays within the bounds.
func (j *joining) admit(ctx context.Context, w *write, due time.Time) error {
	if w.Payload.admitted = j.admissions.known(j.entry); w.Payload.admitted != nil {
		return nil
	}
	release, err := j.commits.Reserve(w)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	w.Payload.admitted, err = j.admissions.readOnce(ctx, j.entry)
	switch {
	case errors.Is(err, store.ErrClosuresChanged):
		return engine.ErrConflict
	case err != nil:
		return errors.Join(batch.ErrNotSent, err)
	}
	return nil
}

// Admitted implements engine.Attempts.
func (j *joining) Admitted(ctx context.Context) error {
	_, err := j.admissions.readOnce(ctx, j.entry)
	return err
}

// readOnce returns the check that admits e. A burst of joins reads once.
func (a *admissions) readOnce(ctx context.Context, e *lock.Entry) (*zk.CheckVersionRequest, error) {
	floor := a.driver.trust.Floor()
	read, err, _ := a.reading.Do(
		fmt.Sprint(e.Tenant, ",", e.Admitted, ",", floor),
		func() (any, error) { return a.read(ctx, e.Tenant, e.Admitted, floor) },
	)
	check, _ := read.(*zk.CheckVersionRequest)
	return check, err
}

// read returns the check for a version of a tenant's closures, if they have it.
func (a *admissions) read(
	ctx context.Context, tenant string, version, floor uint64,
) (*zk.CheckVersionRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	key, now := engine.KeyOf(store.ClosuresKey(tenant)), uint64(0)
	s, err := a.driver.Look(ctx, key, true)
	if s.Found {
		now = a.driver.number(s.Position)
	}
	switch {
	case err != nil:
		return nil, err
	case now != version:
		return nil, store.ErrClosuresChanged
	}
	check := &zk.CheckVersionRequest{Path: a.driver.root.shardOfKey(key), Version: int32(s.Stamp)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil || len(a.of) >= maxAdmissions {
		a.of = map[string]admission{}
	}
	a.of[tenant] = admission{version, floor, check}
	return check, nil
}

// forget has the next check of the tenant read.
func (a *admissions) forget(tenant string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, tenant)
}

// admissionsOf returns the checks of a batch, each once.
func admissionsOf(writes []*write) (all []*zk.CheckVersionRequest) {
	for _, w := range writes {
		check := w.Payload.admitted
		if check != nil &&
			!slices.ContainsFunc(all, func(other *zk.CheckVersionRequest) bool { return *other == *check }) {
			all = append(all, check)
		}
	}
	return all
}

// closuresMoved means that closures in the shard of the check have changed, perhaps those of
// another tenant.
type closuresMoved struct{ check *zk.CheckVersionRequest }

func (e *closuresMoved) Error() string { return "the closures have changed in " + e.check.Path }

// refuse settles the writes of a batch that share a failed check, and returns the others.
func refuse(writes []*write, moved *closuresMoved) (others []*write) {
	for _, w := range writes {
		if check := w.Payload.admitted; check != nil && *check == *moved.check {
			w.Settle(outcome{err: moved}, moved)
			continue
		}
		others = append(others, w)
	}
	return others
}
