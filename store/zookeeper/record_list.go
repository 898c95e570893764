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
)

const (
	// recordsAtOnce bounds parallel reads of records: that many of the largest are 1 MiB.
	recordsAtOnce = 16

	// shardsAtOnce bounds parallel lists of shards. A page lists the names of some shards that it
	// does not reach, so it does not list all.
	shardsAtOnce = 4

	// watchCheck is how often a watch that does not fire is compared with the node.
	watchCheck = time.Second
)

// List implements store.RecordStore. A page begins in a shard, after a name. On a slow store it
// ends with what was read within the deadline.
func (r *RecordStore) List(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if err := q.Check(); err != nil {
		return store.RecordPage{}, err
	}
	shard, after, err := parseCursor(q.After)
	if err != nil {
		return store.RecordPage{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.store.timeout)
	defer cancel()
	for {
		page, err := r.list(ctx, &q, shard, after)
		if err == nil || page.Next != "" {
			return page, nil
		}
		if errors.Is(err, zk.ErrNoAuth) || store.Pause(ctx, firstPause) != nil {
			return store.RecordPage{}, unavailable(err, "list records", false)
		}
	}
}

func parseCursor(cursor string) (shard int, after string, err *lock.Error) {
	if cursor == "" {
		return 0, "", nil
	}
	number, after, _ := strings.Cut(cursor, "/")
	n, bad := strconv.ParseUint(number, 16, 8)
	if bad != nil || n >= recordShards {
		return 0, "", lock.Invalid("after", "is no page's")
	}
	return int(n), after, nil
}

func cursorAt(k store.RecordKey) string {
	return strconv.FormatInt(int64(recordShard(k)), 16) + "/" + recordName(k)
}

// list reads a page from a shard on. If that fails, the next page begins after the last read
// record.
func (r *RecordStore) list(
	ctx context.Context, q *store.RecordQuery, shard int, after string,
) (page store.RecordPage, err error) {
	l, err := r.link(ctx, true)
	if err != nil {
		return page, err
	}
	for ; shard < recordShards; shard, after = shard+shardsAtOnce, "" {
		keys, err := r.keysAfter(ctx, l, q, shard, after)
		if err != nil {
			return page, err
		}
		for some := range slices.Chunk(keys, recordsAtOnce) {
			read, err := r.readSome(ctx, l, some)
			if err != nil {
				return page, err
			}
			for i, found := range read {
				if found.Version != 0 && !page.Add(q, found) {
					return page, nil
				}
				page.Next = cursorAt(some[i])
			}
		}
	}
	page.Next = ""
	return page, nil
}

// keysAfter returns the keys in shardsAtOnce shards that the query selects, in order.
func (r *RecordStore) keysAfter(
	ctx context.Context, l *link, q *store.RecordQuery, shard int, after string,
) ([]store.RecordKey, error) {
	var keys [shardsAtOnce][]store.RecordKey
	err := inParallel(min(shardsAtOnce, recordShards-shard), func(i int) error {
		names, err := children(ctx, l, r.store.root.recordShard(q.Kind, shard+i))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		slices.Sort(names)
		for _, name := range names {
			k, ok := nameOf(q.Kind, name)
			if ok && q.Wants(k) && (i > 0 || name > after) {
				keys[i] = append(keys[i], k)
			}
		}
		return err
	})
	return slices.Concat(keys[:]...), err
}

// readSome reads records; one that is gone has no version.
func (r *RecordStore) readSome(
	ctx context.Context, l *link, keys []store.RecordKey,
) ([]store.Record, error) {
	read := make([]store.Record, len(keys))
	err := inParallel(len(keys), func(i int) error {
		n, err := do(ctx, l, get(r.store.root.recordNode(keys[i])))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil {
			read[i] = store.Record{
				RecordKey: keys[i], Value: store.ParseRecordForm(n.data).Value,
				Version: r.store.number(n.stat.Mzxid),
			}
		}
		return err
	})
	return read, err
}

// Watch implements store.RecordStore.
func (r *RecordStore) Watch(ctx context.Context, kind string, changed func()) {
	if (&store.RecordQuery{Kind: kind}).Check() != nil {
		<-ctx.Done() // there are none, and never will be
		return
	}
	watch := func(ctx context.Context) error { return r.watchOnce(ctx, kind, changed) }
	store.Restart(ctx, watch, func(err error) {
		r.store.log.Debug("a watch of small records starts over", "kind", kind, "error", err)
	})
}

// watchOnce reports every change of the kind's node until the connection breaks.
func (r *RecordStore) watchOnce(ctx context.Context, kind string, changed func()) error {
	l, err := r.store.reads.get(ctx)
	if err != nil {
		return err
	}
	check := time.NewTicker(watchCheck)
	defer check.Stop()
	seen := int32(-1) // no node has it
	for {
		n, err := do(ctx, l, getWatched(r.store.root.kind(kind)))
		if errors.Is(err, zk.ErrNoNode) {
			err = errors.Join(err, r.makeKind(ctx, kind))
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
				now, err := do(ctx, l, get(r.store.root.kind(kind)))
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
