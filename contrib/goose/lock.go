// Package goose lets the migrations of github.com/pressly/goose/v3 run under a lock of Fencepost,
// so that of several processes one migrates. The database needs no locks then.
package goose

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/pressly/goose/v3/lock"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// Locker holds a lock while a provider migrates. Several providers of one process may share it:
// they migrate one after the other.
type Locker struct {
	client  *client.Client
	name    string
	options client.Options
	lost    context.CancelCauseFunc

	slot chan struct{} // full from Lock to Unlock, so that Unlock knows whose lock it releases
	held atomic.Pointer[client.Held]
}

var _ lock.Locker = (*Locker)(nil)

// New returns a locker. Options.Wait is how long Lock waits for another migrator. If the lock is
// lost, the locker calls lost with the [client.LostError]: make it the cancel function of the
// context of the migration. nil lets the migration continue.
func New(
	c *client.Client, name string, options client.Options, lost context.CancelCauseFunc,
) *Locker {
	if lost == nil {
		lost = func(error) {}
	}
	return &Locker{
		client: c, name: name, options: options, lost: lost, slot: make(chan struct{}, 1),
	}
}

// Held returns the lock, or nil if this process does not hold it. Its fence is for the writes of a
// migration in Go.
func (l *Locker) Held() *client.Held { return l.held.Load() }

// Lock waits for the lock, which the client renews until Unlock, also after ctx has ended: what
// goose rolls back then is still under the lock. It does not use the database.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	select {
	case l.slot <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	held, err := l.client.Lock(ctx, l.name, l.options)
	if err != nil {
		<-l.slot
		return err
	}
	l.held.Store(held)
	context.AfterFunc(held.Context(), func() {
		if err := held.Check(); client.CodeOf(err) == api.Lost {
			l.lost(err)
		}
	})
	return nil
}

// Unlock releases the lock, also if ctx has ended. It returns a [client.LostError] if the lock was
// lost before: another migrator may have run meanwhile.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	held := l.held.Swap(nil)
	if held == nil {
		return errors.New("the lock is not held")
	}
	defer func() { <-l.slot }()
	return held.Release(context.WithoutCancel(ctx))
}
