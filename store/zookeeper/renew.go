package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Renew implements store.Store. A successful write proves that its node, or its parent, existed,
// and it sees every earlier removal.
func (s *Store) Renew(ctx context.Context, e *lock.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, s.reader.timeout)
	defer cancel()
	start := time.Now()
	version, err := s.renew(ctx, e)
	s.observe.Operation("renew", time.Since(start), err)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return store.Lost("the entry is not in the queue")
	case errors.Is(err, errAnotherEntry):
		return store.Lost("another entry is in the queue")
	case err != nil:
		return unavailable(err, "renew", false)
	}
	s.leases.renewed(keyOf(e), e.Handle, version)
	return nil
}

var errAnotherEntry = errors.New("the lease is not of this entry")

// renew makes the lease, or sets it if there is one. It returns its version.
func (s *Store) renew(ctx context.Context, e *lock.Entry) (version int32, err error) {
	path := s.reader.root.lease(keyOf(e), e.Handle)
	if fresh(e) && !s.leases.made(keyOf(e)) {
		_, err := onLink(ctx, s.calls, create(path, nil, 0, s.reader.acl))
		if !errors.Is(err, zk.ErrNodeExists) {
			return 0, err
		}
	}
	stat, err := onLink(ctx, s.calls, touch(path))
	switch {
	case err != nil:
		return 0, err
	case !fresh(e) && stat.Czxid != s.reader.zxid(e.Number):
		return 0, errAnotherEntry
	}
	return stat.Version, nil
}

// Remaining implements store.Store. It uses the server's wall clock and this replica's, because
// nothing is decided by it.
func (s *Store) Remaining(ctx context.Context, e *lock.Entry) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if _, err := s.reader.barrier(ctx, s.calls); err != nil {
		return 0, unavailable(err, "ask for the lease", false)
	}
	n, err := s.renewal(ctx, e)
	gone := errors.Is(err, zk.ErrNoNode)
	switch {
	case gone || err == nil && !fresh(e) && n.stat.Czxid != s.reader.zxid(e.Number):
		return 0, store.Lost("the entry is not in the queue")
	case err != nil:
		return 0, unavailable(err, "ask for the lease", false)
	}
	return max(0, min(e.TTL-time.Since(time.UnixMilli(n.stat.Mtime)), e.TTL)), nil
}

// renewal reads the node that the last renewal wrote.
func (s *Store) renewal(ctx context.Context, e *lock.Entry) (node, error) {
	k := keyOf(e)
	n, err := onLink(ctx, s.calls, get(s.reader.root.lease(k, e.Handle)))
	if errors.Is(err, zk.ErrNoNode) && fresh(e) {
		n, err = onLink(ctx, s.calls, get(s.reader.root.primary(k)))
		if err == nil {
			n.stat.Mtime = n.stat.Ctime // a narrowing sets it too
		}
	}
	return n, err
}
