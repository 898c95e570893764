package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
)

// removal is one entry's way out.
type removal struct {
	entry   *lock.Entry
	version int32 // that the lease must have; -1 is any
	why     lock.Reason

	lease, primary string
	paths          []string // to delete, in order, the lease first
	try            string
	from           int32 // records since then may be of an attempt of ours
	epoch          int32
}

func (s *Store) newRemoval(e *lock.Entry, version int32, why lock.Reason) *removal {
	k := keyOf(e)
	r := &removal{
		entry: e, version: version, why: why, lease: s.root.lease(k, e.Handle), primary: s.root.primary(k), try: rand.Text()[:12],
	}
	r.paths = append(r.paths, r.lease, r.primary)
	for _, c := range e.Claims[1:] {
		r.paths = append(r.paths, s.root.secondary(k, c.Name))
	}
	r.epoch, r.from = s.epoch.Load(), s.feed.position()
	return r
}

func (s *Store) removeWrite(r *removal) *write {
	k := keyOf(r.entry)
	w := &write{size: 512 * len(r.paths), change: change{
		Tenant: k.tenant, Lock: k.lock, ID: k.id, Czxid: s.zxid(r.entry.Number),
		Reason: r.why, At: time.Now().UnixMilli(), Try: r.try,
	}}
	for _, path := range r.paths {
		version := int32(-1)
		if path == r.lease {
			version = r.version
		}
		w.ops = append(w.ops, &zk.DeleteRequest{Path: path, Version: version})
	}
	return w
}

// Remove implements service.Store.
func (s *Store) Remove(ctx context.Context, e *lock.Entry, why lock.Reason) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	if err := s.checkNumber(ctx, e); err != nil {
		return err
	}
	r := s.newRemoval(e, -1, why)
	unknown := false
	for {
		out := s.commits.do(ctx, s.removeWrite(r))
		switch {
		case out.err == nil:
			return nil
		case errors.Is(out.err, zk.ErrNoNode) && out.op == 0:
			return s.removedBefore(ctx, r, unknown)
		case s.adapt(ctx, r, out):
			continue
		case answered(out.err):
			return unavailable(out.err, "remove", unknown)
		}
		unknown = unknown || out.maybe
		if pause(ctx, firstPause) != nil {
			return unavailable(out.err, "remove", unknown)
		}
	}
}

// adapt makes a removal fit what somebody did to our nodes by hand.
func (s *Store) adapt(ctx context.Context, r *removal, out outcome) bool {
	if out.op <= 0 || out.op >= len(r.paths) {
		return false
	}
	path := r.paths[out.op]
	switch {
	case errors.Is(out.err, zk.ErrNoNode):
		s.log.Error("a node of an entry is missing, which nobody but us should delete", "path", path)
		r.paths = slices.Delete(r.paths, out.op, out.op+1)
		return true
	case errors.Is(out.err, zk.ErrNotEmpty):
		children, err := onLink(ctx, s.calls, func(c *zk.Conn) ([]string, error) {
			children, _, err := c.Children(path)
			return children, err
		})
		for _, child := range children {
			if full := path + "/" + child; !slices.Contains(r.paths, full) {
				s.log.Error("an entry has a node below it that is not ours, which goes with it", "path", full)
				r.paths = slices.Insert(r.paths, out.op, full)
			}
		}
		return err == nil
	}
	return false
}

// checkNumber finds that e is not the entry that was written, if that can be
// told. The path of a lease is never used twice, so what was read of it once is
// true for ever, and a server that lags behind knows nothing rather than
// something wrong; then the removal itself decides.
func (s *Store) checkNumber(ctx context.Context, e *lock.Entry) error {
	if known := s.feed.entry(keyOf(e)); known != nil && known.Handle == e.Handle && known.Number == e.Number {
		return nil
	}
	path := s.root.lease(keyOf(e), e.Handle)
	n, err := onLink(ctx, s.calls, get(path))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return unavailable(err, "remove", false)
	case n.stat.Czxid != s.zxid(e.Number):
		return errLost("another entry is in the queue")
	}
	return nil
}

// removedBefore tells an entry that one of our own attempts removed from one
// that was gone, by the record that the removal left. If so many records came
// since that it may have been folded away, the attempt is believed to have done
// it.
func (s *Store) removedBefore(ctx context.Context, r *removal, unknown bool) error {
	if !unknown {
		return errLost("the entry is not in the queue")
	}
	l, err := s.calls.get(ctx)
	if err != nil {
		return unavailable(err, "confirm removal", true)
	}
	if r.epoch != s.epoch.Load() {
		return nil
	}
	stat, err := s.barrierOn(ctx, l)
	if err != nil {
		return unavailable(err, "confirm removal", true)
	}
	written, err := s.records(ctx, l, r.epoch, r.from, created(stat))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return unavailable(err, "confirm removal", true)
	}
	for _, w := range written {
		for _, c := range w.record.Changes {
			if c.Try == r.try {
				return nil
			}
		}
	}
	return errLost("the entry is not in the queue")
}
