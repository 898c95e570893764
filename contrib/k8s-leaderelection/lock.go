// Package leaderelection lets the elector of k8s.io/client-go elect by a lock of Fencepost. The
// elector needs no Kubernetes then.
package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// Lock is one candidate for a lock. The elector calls it from one goroutine.
type Lock struct {
	client         *client.Client
	name, identity string

	held atomic.Pointer[client.Held]
	lost time.Time // when held was
}

var _ resourcelock.Interface = (*Lock)(nil)

// New returns a candidate. The identity has to be another in each process, as a host name with a
// random part is.
func New(c *client.Client, name, identity string) *Lock {
	return &Lock{client: c, name: name, identity: identity}
}

// Fence returns the fence of the term, or 0 if this candidate does not lead. Hand it to each write,
// so that the resource rejects those of earlier leaders.
func (l *Lock) Fence() uint64 {
	if held := l.held.Load(); held != nil {
		return held.Fence()
	}
	return 0
}

// Get returns the holder of the lock, as the server knows it.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lock, err := l.client.Look(ctx, l.name)
	if err != nil {
		return nil, nil, err
	}
	if len(lock.Holders) == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "locks"}, l.name)
	}
	holder, now := lock.Holders[0], time.Now()
	since, err := time.Parse(time.RFC3339, string(holder.Since))
	if err != nil {
		return nil, nil, err
	}
	record := &resourcelock.LeaderElectionRecord{
		HolderIdentity: holder.Holder, LeaderTransitions: int(holder.Fence),
		AcquireTime: metav1.NewTime(since), RenewTime: metav1.NewTime(now),
		LeaseDurationSeconds: 1,
	}
	if holder.Holder == l.identity && holder.Fence != l.Fence() {
		record.HolderIdentity += " (an earlier process)"
	}
	// It is another one each time: the elector counts a lease from when it saw a new record, and
	// the server knows that this one holds now.
	return record, []byte(now.Format(time.RFC3339Nano)), nil
}

// Create acquires the lock if it is free.
//
// Its TTL is two durations of the elector's lease, so that one is always left, see Update. After a
// loss it is not acquired again for one such duration. The elector has ended the term by then:
// otherwise it would not notice that there was another leader meanwhile.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease := leaseOf(record)
	if time.Since(l.lost) < lease {
		return errors.New("the lock was lost")
	}
	held, err := l.client.TryLock(ctx, l.name, client.Options{TTL: 2 * lease, Holder: l.identity})
	if err != nil {
		return err
	}
	l.held.Store(held)
	return nil
}

// Update acquires the lock, or releases it if the record has no holder. If this candidate holds the
// lock, Update asks the server whether it still does, and checks that at least the duration of the
// elector's lease is left of it: that is what the elector takes for granted after an update. The
// client renews in the background.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	held := l.held.Load()
	switch {
	case held == nil:
		return l.Create(ctx, record)
	case record.HolderIdentity == "":
		l.held.Store(nil)
		return held.Release(ctx)
	}
	if err := l.check(ctx, held, leaseOf(record)); err != nil {
		l.held.Store(nil)
		l.lost = time.Now()
		_ = held.Release(ctx) // ends the renewals of a revoked lock
		return err
	}
	if left := held.Left(); left < leaseOf(record) {
		return fmt.Errorf("the lock was not renewed in time: %v are left", left)
	}
	return nil
}

// check returns an error if the lock is lost. A server that does not answer soon says nothing: what
// is left of the lease decides then.
func (l *Lock) check(ctx context.Context, held *client.Held, lease time.Duration) error {
	if err := held.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lease/4)
	defer cancel()
	err := l.client.Call(ctx, http.MethodPut, "/locks/"+url.PathEscape(l.name)+"/renew",
		http.Header{"Lock-Token": {held.Token()}}, nil, nil)
	if client.CodeOf(err) == api.Lost {
		return err
	}
	return nil
}

func leaseOf(record resourcelock.LeaderElectionRecord) time.Duration {
	return time.Duration(record.LeaseDurationSeconds) * time.Second
}

// RecordEvent does nothing: the server has events of its own.
func (l *Lock) RecordEvent(string) {}

// Identity of this candidate.
func (l *Lock) Identity() string { return l.identity }

// Describe names the lock in the elector's log.
func (l *Lock) Describe() string { return "fencepost/" + l.name }
