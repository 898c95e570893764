package etcd

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"
)

// life is the lease that this replica's bound records hang on. It begins with the
// first of them.
type life struct {
	store *Store

	mu     sync.Mutex
	id     int64 // 0 if there is none
	closed bool
	tasks  sync.WaitGroup
}

// lease returns the lease, which is renewed from now on.
func (l *life) lease(ctx context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, context.Canceled
	}
	if l.id != 0 {
		return l.id, nil
	}
	granted, err := l.store.leases.grant(ctx, store.RecordLife)
	if err != nil {
		return 0, err
	}
	l.id = granted.id
	l.tasks.Go(func() { l.renew(granted.id) })
	return l.id, nil
}

// renew keeps a lease until the store is closed or etcd does not know it any more.
func (l *life) renew(id int64) {
	for store.Pause(l.store.closing, store.RecordLife/3) == nil {
		ctx, cancel := context.WithTimeout(l.store.closing, attemptTimeout)
		start := time.Now()
		err := l.store.conn.renewer.renew(ctx, id, false)
		cancel()
		l.store.observe.Operation("renew", time.Since(start), err)
		if isLeaseNotFound(err) {
			l.lost(id)
			return
		}
	}
}

// lost forgets a lease that etcd does not know: the next bound record gets another.
func (l *life) lost(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.id = 0
	}
}

// close ends what is bound, if etcd can be asked. The store's upkeep is closing.
func (l *life) close() {
	l.mu.Lock()
	l.closed = true
	id := l.id
	l.mu.Unlock()
	l.tasks.Wait()
	if id != 0 {
		_ = l.store.leases.revoke(context.Background(), id)
	}
}
