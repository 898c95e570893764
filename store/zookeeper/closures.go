package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/singleflight"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// admissions are what admits entries: for a version of a tenant's closures, the version of the
// shard of their record. Every write of such a record raises that, also of one that did not exist,
// which ZooKeeper cannot check otherwise.
type admissions struct {
	records *RecordStore
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
	if of.closures != e.Admitted || of.floor != a.records.store.trust.Floor() {
		return nil
	}
	return of.check
}

// admit reads the closures for w, which is not sent yet, and sets the check that admits its entry.
// The error is [store.ErrClosuresChanged] if they are not as the entry's caller has seen them.
// Meanwhile w counts as pending, so a burst stays within the bounds. Its joins read once.
func (j *join) admit(ctx context.Context, w *write) error {
	release, err := j.commits.Reserve(w)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := j.hurried(ctx)
	defer cancel()
	a, e, floor := j.admissions, j.entry, j.trust.Floor()
	read, err, _ := a.reading.Do(
		fmt.Sprint(e.Tenant, ",", e.Admitted, ",", floor),
		func() (any, error) { return a.read(ctx, e.Tenant, e.Admitted, floor) },
	)
	if err == nil {
		w.Payload.admitted = read.(*zk.CheckVersionRequest)
	}
	return err
}

// read returns the check for a version of a tenant's closures, if they have it.
func (a *admissions) read(
	ctx context.Context, tenant string, version, floor uint64,
) (*zk.CheckVersionRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	key := store.ClosuresKey(tenant)
	s, err := a.records.Look(ctx, key, true)
	switch {
	case err != nil:
		return nil, err
	case s.Version != version:
		return nil, store.ErrClosuresChanged
	}
	check := &zk.CheckVersionRequest{
		Path: a.records.store.root.shardOfRecord(key), Version: int32(s.Guard),
	}
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
		if check != nil && !slices.ContainsFunc(all, func(other *zk.CheckVersionRequest) bool {
			return *other == *check
		}) {
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
