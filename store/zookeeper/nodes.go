package zookeeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// tree is the store's own nodes: where they are, and who may see them.
type tree struct {
	chroot   string
	root     layout
	acl      []zk.ACL
	log      *slog.Logger
	reads    *connector    // for the feed, so that its reads do not queue behind writes
	timeout  time.Duration // of every call
	reported reports
}

func newTree(cfg Config) *tree {
	t := &tree{timeout: cmp.Or(cfg.Timeout, operationTimeout), chroot: strings.TrimSuffix(cfg.Chroot, "/"), log: cfg.Logger, acl: zk.WorldACL(zk.PermAll)}
	t.root = layout(t.chroot + "/" + strings.Trim(cmp.Or(cfg.Prefix, "/fencepost/v1"), "/"))
	if cfg.Username != "" {
		t.acl = zk.AuthACL(zk.PermAll)
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	return t
}

func (t *tree) create(path string, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: t.acl}
}

// ensure makes a node that may be there already.
func (t *tree) ensure(ctx context.Context, c *connector, path string, data []byte) error {
	_, err := onLink(ctx, c, func(conn *zk.Conn) (string, error) { return conn.Create(path, data, 0, t.acl) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// makeNodes makes the nodes that everything else is below. The chroot must be
// there: a replica with a wrong one would have locks of its own.
func (t *tree) makeNodes(ctx context.Context) error {
	chroot := t.chroot
	if chroot != "" {
		there, err := onLink(ctx, t.reads, func(c *zk.Conn) (bool, error) {
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
	for part := range strings.SplitSeq(strings.TrimPrefix(string(t.root), chroot+"/"), "/") {
		path += "/" + part
		if err := t.ensure(ctx, t.reads, path, nil); err != nil {
			return err
		}
	}
	for _, path := range t.root.parts() {
		if err := t.ensure(ctx, t.reads, path, nil); err != nil {
			return err
		}
	}
	return nil
}

var errNoChroot = errors.New("create it, or correct the path in the store's address")

// keepNodes makes again what somebody deleted of the nodes that everything else is
// below.
func (u *upkeep) keepNodes(ctx context.Context) error {
	l, err := u.chores.get(ctx)
	if err != nil {
		return err
	}
	names, err := children(ctx, l, string(u.root))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for _, path := range u.root.parts() {
		if !slices.Contains(names, strings.TrimPrefix(path, string(u.root)+"/")) {
			u.log.Error("a node was deleted, which nobody but us should do; it is made again", "path", path)
			err = u.makeNodes(ctx)
			break
		}
	}
	return err
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
