package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/store"
)

const sweepInterval = store.RecordLife / 6

var _ store.LifeTable[string] = (*lives)(nil)

// lives are the nodes of replicas with bound records, which have a child for each record. A
// replica raises the version of its own node.
type lives struct{ store *Store }

// BeginLife implements store.LifeTable.
func (l *lives) BeginLife(ctx context.Context) (id string, err error) {
	id = rand.Text()
	return id, l.store.ensure(ctx, l.store.calls, l.store.root.life(id), nil)
}

// RenewLife implements store.LifeTable.
func (l *lives) RenewLife(ctx context.Context, id string) error {
	_, err := onLink(ctx, l.store.calls, touch(l.store.root.life(id)))
	if errors.Is(err, zk.ErrNoNode) {
		return store.ErrLifeOver
	}
	return err
}

// EndLife implements store.LifeTable. If it fails, other replicas do it.
func (l *lives) EndLife(ctx context.Context, id string) error {
	return l.store.small.end(ctx, id, anyVersion)
}

// sweeper ends the lives of stopped replicas: those whose version it has seen unchanged for
// [store.RecordLife], by its own clock.
type sweeper struct {
	records *RecordStore
	now     func() time.Duration // monotonic, and counts only while the store answers
	seen    map[string]seenLife
}

type seenLife struct {
	version int32
	since   time.Duration
}

// run sweeps until the store is closed.
func (w *sweeper) run() {
	s := w.records.store
	for store.Pause(s.closing, sweepInterval) == nil {
		s.attend(s.closing, "end lives of other replicas", operationTimeout, w.sweep)
	}
}

// sweep checks all lives once. After an error it starts over: a replica that could not be read
// has its full time again.
func (w *sweeper) sweep(ctx context.Context) error {
	s, before := w.records.store, w.seen
	w.seen = nil
	l, err := s.chores.get(ctx)
	if err != nil {
		return err
	}
	ids, err := children(ctx, l, s.root.lives())
	if err != nil {
		return err
	}
	seen := make(map[string]seenLife, len(ids))
	for _, id := range ids {
		n, err := do(ctx, l, get(s.root.life(id)))
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
			err = w.records.end(ctx, id, life.version)
		}
		if err != nil {
			return err
		}
		seen[id] = life
	}
	w.seen = seen
	return nil
}

// end removes the records that are bound to a life, and then the life, if it still has the
// version; -1 is any. Several replicas may do so at once.
func (r *RecordStore) end(ctx context.Context, life string, version int32) error {
	l, err := r.store.calls.get(ctx)
	if err != nil {
		return err
	}
	path := r.store.root.life(life)
	names, err := children(ctx, l, path)
	for _, name := range names {
		for tries := 0; err == nil; tries++ {
			err = r.endOne(ctx, life, name, version)
			if !errors.Is(err, store.ErrRecordRaced) || tries == 10 {
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

// endOne removes the record of a node below a life, and that node.
func (r *RecordStore) endOne(ctx context.Context, life, name string, version int32) error {
	kind, rest, _ := strings.Cut(name, ",")
	k, ok := nameOf(kind, rest)
	if !ok {
		return nil
	}
	s, err := r.Look(ctx, k, false)
	if err != nil {
		return err
	}
	lives := func(context.Context, *RecordStore, string, string) error { return errLives }
	root := r.store.root
	ops := []recordOp{{lives, &zk.CheckVersionRequest{Path: root.life(life), Version: version}}}
	ops = append(ops, r.shardOps(s, k)...)
	if s.Found && s.Life == life {
		path := root.recordNode(k)
		ops = append(ops, recordOp{raced, &zk.DeleteRequest{Path: path, Version: anyVersion}})
	}
	byOther := func(context.Context, *RecordStore, string, string) error { return nil }
	path := root.boundNode(life, k)
	ops = append(ops, recordOp{byOther, &zk.DeleteRequest{Path: path, Version: anyVersion}})
	_, err = r.multi(ctx, life, kind, ops)
	return err
}
