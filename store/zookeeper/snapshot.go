package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// snapshot is a lock's entries as of one transaction.
//
// ZooKeeper reads one node at a time, so a list of many nodes is not consistent. The log makes it
// so: the records since before the list are applied to it.
type snapshot struct {
	epoch   int32
	zxid    int64
	entries map[key]*lock.Entry
}

func (s *snapshot) sorted() []*lock.Entry {
	return slices.SortedFunc(maps.Values(s.entries), byNumber)
}

func byNumber(a, b *lock.Entry) int { return cmp.Compare(a.Number, b.Number) }

// written is a record with its position in the log and its transaction.
type written struct {
	n      int32
	zxid   int64
	record *record
	here   bool // by this replica
	epoch  int32
	size   int // in bytes
}

var (
	errRotated = errors.New("another log is in use")
	errGap     = errors.New("records of the log are missing")

	// errAnotherLog means that a person deleted the log, and a replica that started then made a new
	// one.
	errAnotherLog = errors.New("the log was deleted and is another one now")
)

// reader reads entries, and their records in the log.
type reader struct{ *journal }

// snapshot reads a lock's entries.
func (r *reader) snapshot(ctx context.Context, l *link, ref lock.Ref) (*snapshot, error) {
	snap, floor := &snapshot{epoch: r.epoch.Load(), entries: map[key]*lock.Entry{}}, r.trust.Floor()
	from, err := r.barrierOn(ctx, l)
	if err != nil {
		return nil, err
	}
	keys, err := r.listKeys(ctx, l, &ref)
	if err != nil {
		return nil, err
	}
	if err := r.readEntries(ctx, l, keys, snap); err != nil {
		return nil, err
	}
	head, err := r.readHead(ctx, l, snap.epoch)
	if err != nil {
		return nil, err
	}
	since, err := r.records(ctx, l, snap.epoch, created(from), created(head))
	if err != nil {
		return nil, err
	}
	for _, w := range since {
		r.replay(snap, w)
	}
	switch {
	case from.Czxid != head.Czxid:
		return nil, errAnotherLog
	case r.trust.Floor() != floor:
		return nil, errMeta // their numbers do not show their order
	}
	elsewhere := func(_ key, e *lock.Entry) bool { return !claims(e, ref) }
	maps.DeleteFunc(snap.entries, elsewhere) // they left the queue as it was read, or were never there
	snap.zxid = head.Mzxid
	return snap, nil
}

// replay applies a record.
func (r *reader) replay(snap *snapshot, w written) {
	for _, c := range w.record.Changes {
		if c.Joined == nil {
			delete(snap.entries, c.key())
			continue
		}
		snap.entries[c.key()] = r.joined(c, w.zxid)
	}
}

func claims(e *lock.Entry, ref lock.Ref) bool {
	same := func(c lock.Claim) bool { return c.Name == ref.Name }
	return e.Tenant == ref.Tenant && slices.ContainsFunc(e.Claims, same)
}

// listKeys lists the keys of a lock's entries, or of all if ref is nil. Away from a set's home, the
// node's name contains the entry's key.
func (r *reader) listKeys(ctx context.Context, l *link, ref *lock.Ref) ([]key, error) {
	shards, err := r.shardsToList(ctx, l, ref)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var keys []key
	err = inParallel(len(shards), func(i int) error {
		names, err := children(ctx, l, shards[i])
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range names {
			k, in, primary, ok := parseName(name)
			switch {
			case !ok:
				r.report(shards[i]+"/"+name, "a node is not an entry's and is passed over")
			case ref == nil && primary, ref != nil && k.tenant == ref.Tenant && in == ref.Name:
				keys = append(keys, k)
			}
		}
		return err
	})
	return keys, err
}

func (r *reader) shardsToList(ctx context.Context, l *link, ref *lock.Ref) ([]string, error) {
	if ref != nil {
		return r.root.shardsOf(*ref), nil
	}
	names, err := children(ctx, l, r.root.entries())
	for i := range names {
		names[i] = r.root.shard(names[i])
	}
	return names, err
}

func (r *reader) readEntries(ctx context.Context, l *link, keys []key, snap *snapshot) error {
	var mu sync.Mutex
	return inParallel(len(keys), func(i int) error {
		e, err := r.readEntry(ctx, l, keys[i])
		if errors.Is(err, zk.ErrNoNode) {
			return nil // gone meanwhile; the log knows
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		snap.entries[keys[i]] = e
		return nil
	})
}

// readEntry reads one entry. It reports a damaged one, which stays in its queue until its lease
// is over.
func (r *reader) readEntry(ctx context.Context, l *link, k key) (*lock.Entry, error) {
	path := r.root.primary(k)
	n, err := do(ctx, l, get(path))
	if errors.Is(err, zk.ErrNoAuth) {
		r.report(path, "nothing is listed, as an entry cannot be read: restore its ACL")
	}
	if err != nil {
		return nil, err
	}
	v, err := store.ParseValue(k.pastKey(), n.data)
	if err == nil {
		return v.Entry(k.pastKey(), r.number(n.stat.Czxid)), nil
	}
	r.report(path, "an entry cannot be read; it stays in its queue until its lease is over",
		"error", err)
	names, err := children(ctx, l, path)
	if err != nil {
		return nil, err
	}
	var handle uint64
	for _, name := range names {
		if h, err := strconv.ParseUint(name, 16, 63); err == nil {
			handle = h
		}
	}
	return store.Damaged(k.pastKey(), r.number(n.stat.Czxid), int64(handle)), nil
}

// joined returns the entry of a change that added or narrowed it.
func (r *reader) joined(c change, zxid int64) *lock.Entry {
	return c.Joined.Entry(c.key().pastKey(), r.number(cmp.Or(c.Narrowed, zxid)))
}
