package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// rotated is the data of a log that is no longer in use.
const rotated = "rotated"

// ensure makes a node that may be there already.
func (s *Store) ensure(ctx context.Context, c *connector, path string, data []byte) error {
	_, err := onLink(ctx, c, func(conn *zk.Conn) (string, error) { return conn.Create(path, data, 0, s.acl) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// makeNodes makes the nodes that everything else is below. The chroot must be
// there: a replica with a wrong one would have locks of its own.
func (s *Store) makeNodes(ctx context.Context) error {
	chroot := s.chroot
	if chroot != "" {
		there, err := onLink(ctx, s.reads, func(c *zk.Conn) (bool, error) {
			there, _, err := c.Exists(chroot)
			return there, err
		})
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("ZooKeeper has no node %s: %w", chroot, errNoChroot)
		}
	}
	path := chroot
	for part := range strings.SplitSeq(strings.TrimPrefix(string(s.root), chroot+"/"), "/") {
		path += "/" + part
		if err := s.ensure(ctx, s.reads, path, nil); err != nil {
			return err
		}
	}
	for _, path := range s.root.parts() {
		if err := s.ensure(ctx, s.reads, path, nil); err != nil {
			return err
		}
	}
	return nil
}

var errNoChroot = errors.New("create it, or correct the path in the store's address")

// keepNodes makes again what somebody deleted of the nodes that everything else is
// below.
func (s *Store) keepNodes(ctx context.Context) error {
	l, err := s.chores.get(ctx)
	if err != nil {
		return err
	}
	names, err := children(ctx, l, string(s.root))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for _, path := range s.root.parts() {
		if !slices.Contains(names, strings.TrimPrefix(path, string(s.root)+"/")) {
			s.log.Error("a node was deleted, which nobody but us should do; it is made again", "path", path)
			err = s.makeNodes(ctx)
			break
		}
	}
	return errors.Join(err, s.keepMeta(ctx))
}

// loadEpoch finds out which log is in use, and makes the first one.
func (s *Store) loadEpoch(ctx context.Context) error {
	n, err := onLink(ctx, s.reads, get(s.root.epoch()))
	if err != nil {
		return err
	}
	if err := s.ensure(ctx, s.reads, s.root.log(n.stat.Version), nil); err != nil {
		return err
	}
	s.epoch.Store(n.stat.Version)
	return nil
}

// mend asks the upkeep to look after the log.
func (s *Store) mend(why error) {
	select {
	case s.mending <- why:
	default: // it will already
	}
}

// mendLog finds the log that is in use, or begins another one if it is gone. It
// makes again what somebody deleted.
func (s *Store) mendLog(ctx context.Context, why error) error {
	was := s.epoch.Load()
	if err := s.makeNodes(ctx); err != nil {
		return err
	}
	there, err := onLink(ctx, s.reads, func(c *zk.Conn) (bool, error) {
		_, stat, err := c.Get(s.root.epoch())
		if err != nil {
			return false, err
		}
		s.epoch.Store(stat.Version)
		there, _, err := c.Exists(s.root.log(stat.Version))
		return there, err
	})
	if err != nil || there {
		if s.epoch.Load() != was {
			s.log.Info("another log is in use", "epoch", s.epoch.Load())
		}
		return err
	}
	s.log.Error("the log is gone, which nobody but us should delete; another one is begun", "epoch", s.epoch.Load(), "error", why)
	return s.rotate(ctx)
}

// rotate begins another log, before the names of records could overflow, or
// because the old one is gone. Who writes or follows finds out by the old one,
// which is read for what it says of ends until [Store.retire] has moved that.
func (s *Store) rotate(ctx context.Context) error {
	was := s.epoch.Load()
	ops := []any{
		&zk.SetDataRequest{Path: s.root.epoch(), Version: was},
		s.create(s.root.log(was+1), nil),
	}
	mark := &zk.SetDataRequest{Path: s.root.log(was), Data: []byte(rotated), Version: -1}
	multi := func(ops ...any) error {
		_, err := onLink(ctx, s.reads, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) })
		return err
	}
	err := multi(append(slices.Clone(ops), mark)...)
	if errors.Is(err, zk.ErrNoNode) {
		err = multi(ops...)
	}
	if err != nil && !errors.Is(err, zk.ErrBadVersion) {
		return err
	}
	return s.loadEpoch(ctx)
}

// endedPath is the path of a new node of ends; its name says when it may go.
func (s *Store) endedPath() string {
	return fmt.Sprintf("%s/%013d-%s", s.root.ended(), time.Now().UnixMilli(), rand.Text()[:8])
}

// staleNodes are the nodes of broken connections that are yet to be deleted.
type staleNodes struct {
	mu    sync.Mutex
	paths []string
}

// fence readies a connection for writing: it has a node of its own, which all
// its writes check, and the nodes of the connections before it are gone, so that
// nothing that was sent on those is executed from now on.
func (s *Store) fence(ctx context.Context, l *link) error {
	s.stale.mu.Lock()
	defer s.stale.mu.Unlock()
	for len(s.stale.paths) > 0 {
		last := s.stale.paths[len(s.stale.paths)-1]
		_, err := do(ctx, l, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(last, -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		s.stale.paths = s.stale.paths[:len(s.stale.paths)-1]
	}
	node := s.root.links() + "/" + rand.Text()
	s.stale.paths = append(s.stale.paths, node) // also if the answer is lost
	_, err := do(ctx, l, func(c *zk.Conn) (string, error) { return c.Create(node, nil, zk.FlagEphemeral, s.acl) })
	if err == nil {
		l.node = node
	} else if errors.Is(err, zk.ErrNoNode) {
		s.mend(err)
	}
	return err
}
