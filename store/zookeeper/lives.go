package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

const sweepInterval = store.RecordLife / 6

// BeginLife implements engine.Lives. A life is a node of a replica, which has a child for each
// value that is bound to it. The replica raises the version of its node.
func (d *driver) BeginLife(ctx context.Context) (id string, err error) {
	id = rand.Text()
	return id, d.ensure(ctx, d.calls, d.root.life(id))
}

// RenewLife implements engine.Lives.
func (d *driver) RenewLife(ctx context.Context, id string) error {
	_, err := onLink(ctx, d.calls, touch(d.root.life(id)))
	if errors.Is(err, zk.ErrNoNode) {
		return engine.ErrLifeOver
	}
	return err
}

// EndLife implements engine.Lives. If it fails, other replicas do it.
func (d *driver) EndLife(ctx context.Context, id string) error {
	return d.endLife(ctx, id, anyVersion)
}

// sweeper ends the lives of stopped replicas: those whose version it has seen unchanged for
// [store.RecordLife], by its own clock.
type sweeper struct {
	*driver
	now  func() time.Duration // monotonic, and counts only while the store answers
	seen map[string]seenLife
}

type seenLife struct {
	version int32
	since   time.Duration
}

// run sweeps until ctx ends.
func (w *sweeper) run(ctx context.Context) {
	for store.Pause(ctx, sweepInterval) == nil {
		w.attend(ctx, "end lives of other replicas", operationTimeout, w.sweep)
	}
}

// sweep checks all lives once. After an error it starts over: a replica that could not be read
// has its full time again.
func (w *sweeper) sweep(ctx context.Context) error {
	before := w.seen
	w.seen = nil
	l, err := w.chores.get(ctx)
	if err != nil {
		return err
	}
	ids, err := children(ctx, l, w.root.lives())
	if err != nil {
		return err
	}
	seen := make(map[string]seenLife, len(ids))
	for _, id := range ids {
		n, err := do(ctx, l, get(w.root.life(id)))
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		life, known := before[id]
		if now := w.now(); !known || life.version != n.stat.Version {
			life = seenLife{n.stat.Version, now}
		} else if now-life.since >= store.RecordLife {
			err = w.endLife(ctx, id, life.version)
		}
		if err != nil {
			return err
		}
		seen[id] = life
	}
	w.seen = seen
	return nil
}

// endLife removes the values that are bound to a life, and then the life, if it still has the
// version; -1 is any. Several replicas may do so at once.
func (d *driver) endLife(ctx context.Context, life string, version int32) error {
	l, err := d.calls.get(ctx)
	if err != nil {
		return err
	}
	path := d.root.life(life)
	names, err := children(ctx, l, path)
	for _, name := range names {
		for tries := 0; err == nil; tries++ {
			err = d.endOne(ctx, life, name, version)
			if _, raced := errors.AsType[*engine.Raced](err); !raced || tries == 10 {
				break
			}
			err = store.Pause(ctx, firstPause)
		}
	}
	if err == nil {
		_, err = do(ctx, l, remove(path, version))
	}
	for _, other := range []error{zk.ErrNoNode, zk.ErrBadVersion, zk.ErrNotEmpty, errLives} {
		if errors.Is(err, other) {
			return nil // another replica was faster, or it lives
		}
	}
	return err
}

// errLives means that a replica has renewed its life.
var errLives = errors.New("the replica lives")

// errUnbound means that the value is no longer bound to the life.
var errUnbound = errors.New("the value is bound to the life no more")

// endOne removes the value of a node below a life, and that node.
func (d *driver) endOne(ctx context.Context, life, name string, version int32) error {
	parts := strings.Split(name, ",")
	if len(parts) < 3 {
		return nil
	}
	of := len(parts) - 2 // a name is a tenant and an id
	k := engine.Key{Dir: strings.Join(parts[:of], "/"), Name: strings.Join(parts[of:], "/")}
	s, err := d.Look(ctx, k, false)
	if err != nil {
		return err
	}
	t := engine.Txn{If: []engine.If{{Key: k, Was: s}}}
	if s.Found && engine.ParseForm(s.Data).Life == life { // else it was changed by hand
		t.Put = []engine.Put{{Key: k, Delete: true}}
	}
	steps := append(
		[]step{{&zk.CheckVersionRequest{Path: d.root.life(life), Version: version}, errLives}},
		d.steps(t)...,
	)
	unbind := &zk.DeleteRequest{Path: d.root.bound(life, k), Version: anyVersion}
	_, err = d.commit(ctx, d.calls, append(steps, step{unbind, errUnbound}))
	if errors.Is(err, errUnbound) {
		return nil
	}
	return err
}
