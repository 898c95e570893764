package zookeeper

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/engine"
)

const (
	// valuesAtOnce bounds parallel reads of values: that many of the largest are 1 MiB.
	valuesAtOnce = 16

	// shardsAtOnce bounds parallel lists of shards. A page lists the names of some shards that it
	// does not reach, so it does not list all.
	shardsAtOnce = 4

	// watchCheck is how often a watch that does not fire is compared with the node.
	watchCheck = time.Second
)

// List implements engine.Driver. A page begins in a shard, after a name. On a slow store it ends
// with what was read within the deadline.
func (d *driver) List(ctx context.Context, l engine.Listing) (string, error) {
	shard, after, err := parseCursor(l.Cursor)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for {
		next, err := d.list(ctx, &l, shard, after)
		if err == nil || next != "" {
			return next, nil
		}
		if errors.Is(err, zk.ErrNoAuth) || store.Pause(ctx, firstPause) != nil {
			return "", unavailable(err, "list records", false)
		}
	}
}

func parseCursor(cursor string) (shard int, after string, err *lock.Error) {
	if cursor == "" {
		return 0, "", nil
	}
	number, after, _ := strings.Cut(cursor, "/")
	n, bad := strconv.ParseUint(number, 16, 8)
	if bad != nil || n >= dirShards {
		return 0, "", lock.Invalid("after", "is no page's")
	}
	return int(n), after, nil
}

func cursorAt(name string) string {
	return strconv.FormatInt(int64(shardIndex(name)), 16) + "/" + name
}

// list reads from a shard on. If that fails, the rest begins after the last value read.
func (d *driver) list(
	ctx context.Context, l *engine.Listing, shard int, after string,
) (next string, err error) {
	on, err := d.calls.get(ctx)
	if err == nil {
		_, err = d.barrierOn(ctx, on)
	}
	if err != nil {
		return "", err
	}
	for ; shard < dirShards; shard, after = shard+shardsAtOnce, "" {
		names, err := d.namesAfter(ctx, on, l, shard, after)
		if err != nil {
			return next, err
		}
		for some := range slices.Chunk(names, valuesAtOnce) {
			read, err := d.readSome(ctx, on, l.Dir, some)
			if err != nil {
				return next, err
			}
			for i, s := range read {
				if s.Found && !l.Take(some[i], s) {
					return next, nil
				}
				next = cursorAt(some[i])
			}
		}
	}
	return "", nil
}

// namesAfter returns the names in shardsAtOnce shards that the listing selects, in order.
func (d *driver) namesAfter(
	ctx context.Context, on *link, l *engine.Listing, shard int, after string,
) ([]string, error) {
	var names [shardsAtOnce][]string
	err := inParallel(min(shardsAtOnce, dirShards-shard), func(i int) error {
		nodes, err := children(ctx, on, d.root.dirShard(l.Dir, shard+i))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		for _, node := range nodes {
			name := strings.ReplaceAll(node, ",", "/")
			if l.Wants(name) && (i > 0 || name > after) {
				names[i] = append(names[i], name)
			}
		}
		slices.Sort(names[i])
		return err
	})
	return slices.Concat(names[:]...), err
}

// readSome reads values; one that is gone is not found.
func (d *driver) readSome(
	ctx context.Context, on *link, dir string, names []string,
) ([]engine.State, error) {
	read := make([]engine.State, len(names))
	err := inParallel(len(names), func(i int) error {
		n, err := do(ctx, on, get(d.root.value(engine.Key{Dir: dir, Name: names[i]})))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil {
			read[i] = engine.State{Found: true, Data: n.data, Position: n.stat.Mzxid}
		}
		return err
	})
	return read, err
}

// Follow implements engine.Driver. It reports every change of the directory's node.
func (d *driver) Follow(ctx context.Context, dir string, changed func()) error {
	l, err := d.reads.get(ctx)
	if err != nil {
		return err
	}
	check := time.NewTicker(watchCheck)
	defer check.Stop()
	seen := int32(-1) // no node has it
	for {
		n, err := do(ctx, l, getWatched(d.root.dir(dir)))
		if errors.Is(err, zk.ErrNoNode) {
			err = errors.Join(err, d.makeDir(ctx, dir))
		}
		if err != nil {
			return err
		}
		for fired := false; !fired; {
			if n.stat.Version != seen {
				seen = n.stat.Version
				changed()
			}
			select {
			case <-n.watch:
				fired = true
			case <-check.C:
				now, err := do(ctx, l, get(d.root.dir(dir)))
				if err != nil {
					return err
				}
				n.node = now
			case <-l.broken:
				return l.why
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// watchedNode is a node with a watch on its data.
type watchedNode struct {
	node
	watch <-chan zk.Event
}

func getWatched(path string) func(*zk.Conn) (watchedNode, error) {
	return func(c *zk.Conn) (watchedNode, error) {
		data, stat, watch, err := c.GetW(path)
		return watchedNode{node{data, stat}, watch}, err
	}
}
