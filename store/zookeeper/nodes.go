package zookeeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// tree is the store's own nodes: where they are, and their ACL.
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
	t := &tree{
		timeout: cmp.Or(cfg.Timeout, operationTimeout), chroot: strings.TrimSuffix(cfg.Chroot, "/"),
		log: cfg.Logger, acl: zk.WorldACL(zk.PermAll),
	}
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

// ensure makes a node that may already exist.
func (t *tree) ensure(ctx context.Context, c *connector, path string) error {
	_, err := onLink(ctx, c, create(path, nil, 0, t.acl))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return t.deleted(path, err)
}

// deleted reports a node that is missing, or its parent, although only Open makes it.
func (t *tree) deleted(path string, err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		t.report(path, "the node, or the one above it, was deleted by hand: "+
			"restart all servers, which make it again")
	}
	return err
}

// makeNodes makes the parents of all other nodes. The chroot must exist: a replica with a wrong
// one would have separate locks.
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
		if err := t.ensure(ctx, t.reads, path); err != nil {
			return err
		}
	}
	for _, path := range t.root.parts() {
		if err := t.ensure(ctx, t.reads, path); err != nil {
			return err
		}
	}
	return nil
}

var errNoChroot = errors.New("create it, or correct the path in the store's address")

// staleNodes are nodes of broken connections that must still be deleted.
type staleNodes struct {
	mu    sync.Mutex
	paths []string
}

// fence prepares a connection for writing. It makes the connection's own node, which all its
// writes check, and deletes the nodes of earlier connections. From then on the server runs no
// write that was sent on those.
func (s *Store) fence(ctx context.Context, l *link) error {
	s.stale.mu.Lock()
	defer s.stale.mu.Unlock()
	for len(s.stale.paths) > 0 {
		last := s.stale.paths[len(s.stale.paths)-1]
		_, err := do(ctx, l, remove(last, -1))
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		s.stale.paths = s.stale.paths[:len(s.stale.paths)-1]
	}
	node := s.reader.root.links() + "/" + rand.Text()
	s.stale.paths = append(s.stale.paths, node) // also if the answer is lost
	_, err := do(ctx, l, create(node, nil, zk.FlagEphemeral, s.reader.acl))
	if err == nil {
		l.node = node
	}
	return s.reader.deleted(node, err)
}
