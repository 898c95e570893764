package etcd

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/store"
)

var _ store.LifeTable[int64] = (*lives)(nil)

// lives are the leases of bound records.
type lives struct{ store *Store }

// BeginLife implements store.LifeTable.
func (l *lives) BeginLife(ctx context.Context) (int64, error) {
	granted, err := l.store.leases.grant(ctx, store.RecordLife)
	return granted.id, err
}

// RenewLife implements store.LifeTable.
func (l *lives) RenewLife(ctx context.Context, lease int64) error {
	start := time.Now()
	err := l.store.conn.renewer.renew(ctx, lease)
	l.store.observe.Operation("renew", time.Since(start), err)
	if isLeaseNotFound(err) {
		return store.ErrLifeOver
	}
	return err
}

// EndLife implements store.LifeTable.
func (l *lives) EndLife(ctx context.Context, lease int64) error {
	return l.store.leases.revoke(ctx, lease)
}
