package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// dirShards is the number of nodes for the values of a directory.
const dirShards = 16

func (r layout) records() string           { return string(r) + "/records" }
func (r layout) lives() string             { return string(r) + "/lives" }
func (r layout) life(id string) string     { return r.lives() + "/" + id }
func (r layout) dir(dir string) string     { return string(r) + "/" + dir }
func (r layout) meta() string              { return string(r) + "/" + engine.MetaKey().Name }
func nodeName(name string) string          { return strings.ReplaceAll(name, "/", ",") }
func shardIndex(name string) int           { return int(hash(nodeName(name)) % dirShards) }
func (r layout) value(k engine.Key) string { return r.shardOfKey(k) + "/" + nodeName(k.Name) }

func (r layout) dirShard(dir string, i int) string { return fmt.Sprintf("%s/%x", r.dir(dir), i) }

func (r layout) shardOfKey(k engine.Key) string { return r.dirShard(k.Dir, shardIndex(k.Name)) }

// bound is the node below a life that binds the value of a key to it.
func (r layout) bound(life string, k engine.Key) string {
	return r.life(life) + "/" + nodeName(k.Dir+"/"+k.Name)
}

// driver is the store of the engine. A value is a node in a shard of its directory. Every write in
// a shard sets the shard, so its version is the stamp of all its keys: ZooKeeper cannot check that
// a node is missing, or that it was not made again. Every write in a directory sets the directory,
// which wakes its followers. The store's own record is a node whose version is its stamp, and each
// write of it is in the log.
type driver struct {
	*journal
	calls   *connector
	chores  *connector
	observe store.Observer
}

var _ engine.Driver = (*driver)(nil)

// Look implements engine.Driver. It reads the shard first: if its version is unchanged at the
// write, nothing in it has changed since.
func (d *driver) Look(ctx context.Context, k engine.Key, fresh bool) (s engine.State, err error) {
	if k == engine.MetaKey() {
		return d.lookAtOwn(ctx)
	}
	l, err := d.calls.get(ctx)
	if err == nil && fresh {
		_, err = d.barrierOn(ctx, l)
	}
	if err != nil {
		return s, err
	}
	shard, err := do(ctx, l, get(d.root.shardOfKey(k)))
	if errors.Is(err, zk.ErrNoNode) {
		if err = d.makeDir(ctx, k.Dir); err == nil {
			return d.Look(ctx, k, fresh)
		}
	}
	if err != nil {
		return s, err
	}
	s.Stamp = int64(shard.stat.Version)
	n, err := do(ctx, l, get(d.root.value(k)))
	if errors.Is(err, zk.ErrNoNode) {
		return s, nil
	}
	if err == nil {
		s.Found, s.Data, s.Position = true, n.data, n.stat.Mzxid
	}
	return s, err
}

// lookAtOwn reads the store's own record.
func (d *driver) lookAtOwn(ctx context.Context) (s engine.State, err error) {
	l, err := d.forOwn().get(ctx)
	if err != nil {
		return s, err
	}
	at, err := d.setLog(ctx, l)
	if err != nil {
		return s, d.refused(err, "read the store's own record")
	}
	s.At.Position = at.Mzxid
	n, err := do(ctx, l, get(d.root.meta()))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return s, nil
	case err != nil:
		return s, d.refused(err, "read the store's own record")
	}
	s.Found, s.Data, s.Position, s.Stamp = true, n.data, n.stat.Mzxid, int64(n.stat.Version)
	return s, nil
}

// refused translates an answer that another attempt would not change: without rights, or on a log
// that is no longer in use.
func (*driver) refused(err error, doing string) error {
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, errRefused) || errors.Is(err, zk.ErrBadVersion) {
		return unavailable(err, doing, false)
	}
	return err
}

// makeDir makes the nodes of a directory.
func (d *driver) makeDir(ctx context.Context, dir string) error {
	if err := d.ensure(ctx, d.calls, d.root.dir(dir)); err != nil {
		return err
	}
	return inParallel(dirShards, func(i int) error {
		return d.ensure(ctx, d.calls, d.root.dirShard(dir, i))
	})
}

// step is an operation of a transaction, and what its failure means.
type step struct {
	op     any
	failed error
}

// noDir means that the nodes of a directory are missing.
type noDir struct{ dir string }

func (e *noDir) Error() string { return "the directory " + e.dir + " is missing" }

// steps returns the operations of a transaction.
func (d *driver) steps(t engine.Txn) (steps []step) {
	put := func(k engine.Key) bool {
		return slices.ContainsFunc(t.Put, func(p engine.Put) bool { return p.Key == k })
	}
	for i, c := range t.If {
		race, stamp := &engine.Raced{If: i}, int32(c.Was.Stamp)
		switch {
		case c.Key == engine.MetaKey():
			steps = append(steps, step{&zk.CheckVersionRequest{Path: d.root.meta(), Version: stamp}, race})
		case put(c.Key): // every other write in the shard since the look is excluded, however late
			shard := &zk.SetDataRequest{Path: d.root.shardOfKey(c.Key), Version: stamp}
			steps = append(steps, step{shard, race})
		default:
			shard := &zk.CheckVersionRequest{Path: d.root.shardOfKey(c.Key), Version: stamp}
			steps = append(steps, step{shard, race})
		}
	}
	for _, p := range t.Put {
		steps = append(steps, d.putSteps(p, stateIn(t, p.Key))...)
	}
	return steps
}

// stateIn returns the state of a key that a transaction has as a condition.
func stateIn(t engine.Txn, k engine.Key) (s engine.State) {
	for _, c := range t.If {
		if c.Key == k {
			s = c.Was
		}
	}
	return s
}

// putSteps returns the operations of one write of a key that was in a state.
func (d *driver) putSteps(p engine.Put, was engine.State) []step {
	race, path := &engine.Raced{If: -1}, d.root.value(p.Key)
	steps := []step{{&zk.SetDataRequest{Path: d.root.dir(p.Key.Dir), Version: -1}, &noDir{p.Key.Dir}}}
	switch {
	case p.Delete:
		steps = append(steps, step{&zk.DeleteRequest{Path: path, Version: -1}, race})
	case was.Found:
		steps = append(steps, step{&zk.SetDataRequest{Path: path, Data: p.Value, Version: -1}, race})
	default:
		steps = append(steps, step{d.create(path, p.Value), race})
	}
	if p.Life == p.Was {
		return steps
	}
	if p.Was != "" {
		unbind := &zk.DeleteRequest{Path: d.root.bound(p.Was, p.Key), Version: anyVersion}
		steps = append(steps, step{unbind, race})
	}
	if p.Life != "" {
		steps = append(steps, step{d.create(d.root.bound(p.Life, p.Key), nil), engine.ErrLifeOver})
	}
	return steps
}

// Commit implements engine.Driver.
func (d *driver) Commit(ctx context.Context, t engine.Txn) (int64, error) {
	if t.Put[0].Key == engine.MetaKey() {
		return d.putOwn(ctx, t.If[0].Was, t.Put[0].Value)
	}
	return d.commit(ctx, d.calls, d.steps(t))
}

// putOwn makes the store's own record, or replaces it and reports that to all followers by a record
// in the log.
func (d *driver) putOwn(ctx context.Context, was engine.State, value []byte) (int64, error) {
	race, epoch := &engine.Raced{}, d.epoch.Load()
	moved := errors.Join(batch.ErrNotSent, zk.ErrBadVersion)
	steps := []step{
		{&zk.CheckVersionRequest{Path: d.root.epoch(), Version: epoch}, moved},
		{&zk.SetDataRequest{Path: d.root.log(epoch), Version: anyVersion}, moved},
	}
	if !was.Found {
		return d.commit(ctx, d.forOwn(), append(steps, step{d.create(d.root.meta(), value), race}))
	}
	put := &zk.SetDataRequest{Path: d.root.meta(), Data: value, Version: int32(was.Stamp)}
	told := d.append(epoch, store.Encode(record{Meta: true}))
	return d.commit(ctx, d.forOwn(), append(steps, step{put, race}, step{told, moved}))
}

// forOwn returns the connection for the store's own record: that for calls, or that of the feed
// while there is none, as when the store is opened.
func (d *driver) forOwn() *connector {
	if d.calls == nil || !d.calls.isOpen() {
		return d.reads
	}
	return d.calls
}

// commit makes one transaction. Its zxid is known if one operation sets a node.
func (d *driver) commit(ctx context.Context, c *connector, steps []step) (zxid int64, err error) {
	l, err := c.get(ctx)
	if err != nil {
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	all := make([]any, len(steps))
	for i, s := range steps {
		all[i] = s.op
	}
	start, mark := time.Now(), d.trust.Sent()
	results, err := do(ctx, l, multi(all...))
	d.observe.Operation("write a record", time.Since(start), err)
	failed := failedOp(results)
	switch {
	case err == nil:
		for _, r := range results {
			if r.Stat != nil {
				zxid = r.Stat.Mzxid
			}
		}
		if zxid > 0 {
			d.trust.Received(mark, zxid, 0)
		}
		return zxid, nil
	case answered(err) && failed >= 0 && !errors.Is(err, zk.ErrNoAuth):
		return 0, d.explain(ctx, steps[failed].failed)
	case harmless(err):
		return 0, errors.Join(batch.ErrNotSent, err)
	}
	return 0, err
}

// explain returns why an operation failed, and makes a directory that is missing.
func (d *driver) explain(ctx context.Context, failed error) error {
	if missing := (*noDir)(nil); errors.As(failed, &missing) {
		return errors.Join(batch.ErrNotSent, d.makeDir(ctx, missing.dir))
	}
	if errors.Is(failed, zk.ErrBadVersion) {
		d.findLog()
	}
	return failed
}

// Used reports whether the log has had records.
func (d *driver) Used(ctx context.Context) (bool, error) {
	n, err := onLink(ctx, d.reads, get(d.root.log(d.epoch.Load())))
	if err != nil {
		return false, err
	}
	return n.stat.Cversion > 0 || d.epoch.Load() > 0, nil
}
