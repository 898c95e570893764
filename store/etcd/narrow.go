package etcd

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Narrow implements [store.Store].
func (*Store) Narrow(context.Context, *lock.Entry, []lock.Claim) (*lock.Entry, error) {
	return nil, store.Unavailable(errors.ErrUnsupported, "narrow", false)
}
