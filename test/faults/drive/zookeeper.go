package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/store"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/test/faults/history"
)

// The layout in ZooKeeper. Every change is one transaction, which adds a record of
// it to the log, so that the record's czxid is the number of the change:
//
//	logs/<epoch>/<n>                                  record n
//	entries/<shard>/<tenant>,<lock>,<id>/<lease>      an entry and its lease, once there is one
//	entries/<shard>/<tenant>,<lock>,<id>,<first lock> the same in another lock of its set
const (
	zooRoot = "/fencepost/v1"
	zooSync = "/faults"

	zooPoll     = 5 * time.Millisecond
	zooSession  = 4 * time.Second
	zooParallel = 64
)

// record is what one transaction changed.
type record struct{ Changes []zooChange }

type zooChange struct {
	Tenant, Lock, ID, Reason string
	Joined                   json.RawMessage
	Czxid                    int64 // of the entry that left; 0 is the one that is there
	Narrowed                 int64 // at which zxid it joined, of an entry that left some of its locks
}

// inZooKeeper observes by reading the log of changes repeatedly, because the library registers
// watches again with a data race. Its positions are numbers of records, and it begins with the
// first.
type inZooKeeper struct {
	conn *zk.Conn
	log  string

	mu    sync.Mutex
	there map[string]*zooEntry // by place
}

// zooEntry is what has to be known of an entry to remove it.
type zooEntry struct {
	tenant, lock, id string
	number           int64
	locks            []string
}

// ObserveZooKeeper starts observing the entries of tenant, once there is a service.
func ObserveZooKeeper(
	ctx context.Context,
	servers []string,
	tenant string,
	now func() time.Duration,
) (*Store, error) {
	conn, _, err := zk.Connect(servers, zooSession, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return nil, fmt.Errorf("observe ZooKeeper: %w", err)
	}
	z := &inZooKeeper{conn: conn, there: map[string]*zooEntry{}}
	_, err = within(ctx, func() (*zk.Stat, error) {
		_, stat, err := conn.Get(zooRoot + "/epoch")
		if err != nil {
			return nil, err
		}
		z.log = fmt.Sprintf("%s/logs/%010d", zooRoot, stat.Version)
		_, err = conn.Create(zooSync, nil, 0, zk.WorldACL(zk.PermAll))
		return stat, err
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("observe ZooKeeper: %w", err)
	}
	return observe(ctx, z, 0, tenant, now), nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (z *inZooKeeper) close() error {
	z.conn.Close()
	return nil
}

// within makes a call of the library, which knows no contexts. One that is
// abandoned ends with the connection.
func within[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := call()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// run reads what is new. What cannot be read now is read later, unless it was
// folded away.
func (z *inZooKeeper) run(ctx context.Context, s *Store) {
	for store.Pause(ctx, zooPoll) == nil {
		length, err := within(ctx, z.length)
		if err != nil {
			continue // no majority, or an election
		}
		for next := s.position(); next < length && ctx.Err() == nil; {
			to := min(length, next+zooParallel)
			read, err := z.records(ctx, next, to)
			if err != nil {
				if errors.Is(err, zk.ErrNoNode) && !z.follows(ctx, next) {
					s.fail(fmt.Errorf("record %d was folded away before it was observed", next))
					return
				}
				break
			}
			changes, err := z.changesOf(read, s.tenant, s.now())
			if err != nil {
				s.fail(err)
				return
			}
			s.take(to, changes)
			next = to
		}
	}
}

// length is how many records there have been.
func (z *inZooKeeper) length() (int64, error) {
	_, stat, err := z.conn.Exists(z.log)
	if err != nil {
		return 0, err
	}
	return int64(stat.Cversion+stat.NumChildren) / 2, nil
}

// follows tells a server that lags behind, as another session may find it, from
// a log that has lost a record.
func (z *inZooKeeper) follows(ctx context.Context, n int64) bool {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for {
		switch _, err := z.records(ctx, n, n+1); {
		case err == nil:
			return true
		case errors.Is(err, zk.ErrNoNode):
			if at, err := z.position(ctx); err == nil && at > n {
				_, err := z.records(ctx, n, n+1)
				return !errors.Is(err, zk.ErrNoNode)
			}
		}
		if store.Pause(ctx, 100*time.Millisecond) != nil {
			return false
		}
	}
}

// numbered is a record and the number of its transaction.
type numbered struct {
	n, zxid int64
	record  record
}

// records reads some records at once.
func (z *inZooKeeper) records(ctx context.Context, from, to int64) ([]numbered, error) {
	return within(ctx, func() ([]numbered, error) {
		read, errs := make([]numbered, to-from), make([]error, to-from)
		var all sync.WaitGroup
		for i := range read {
			all.Go(func() { read[i], errs[i] = z.read(from + int64(i)) })
		}
		all.Wait()
		return read, errors.Join(errs...)
	})
}

func (z *inZooKeeper) read(n int64) (numbered, error) {
	data, stat, err := z.conn.Get(fmt.Sprintf("%s/%010d", z.log, n))
	if err != nil {
		return numbered{}, err
	}
	r := numbered{n: n, zxid: stat.Czxid}
	if err := json.Unmarshal(data, &r.record); err != nil {
		return r, fmt.Errorf("record %d: %w", n, err)
	}
	return r, nil
}

// changesOf translates records. An entry of a set joins and leaves each of its locks.
func (z *inZooKeeper) changesOf(
	records []numbered,
	tenant string,
	at time.Duration,
) ([]change, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	var changes []change
	for _, r := range records {
		for _, c := range r.record.Changes {
			if c.Tenant != tenant {
				continue
			}
			e := &zooEntry{tenant: c.Tenant, lock: c.Lock, id: c.ID, number: r.zxid}
			if c.Lock != home {
				e.locks = []string{c.Lock}
			}
			place := e.path(c.Lock)
			if c.Joined != nil {
				if err := e.read(c.Joined); err != nil {
					return nil, fmt.Errorf("record %d: %w", r.n, err)
				}
				e = z.joined(place, e, c)
			} else if known := z.there[place]; known == nil || c.Czxid != 0 && known.number != c.Czxid {
				return nil, fmt.Errorf("record %d removes %s of %d, which is not there", r.n, place, c.Czxid)
			} else {
				delete(z.there, place)
				e = known
			}
			for _, name := range e.locks {
				one := history.Change{
					Lock: name, Entry: e.id, Revision: r.zxid, Reason: c.Reason, At: at,
					Joined: c.Joined != nil && c.Narrowed == 0,
				}
				if one.Joined {
					one.Claim = claimOn(name, c.Joined)
				}
				changes = append(changes, change{one, place})
			}
		}
	}
	return changes, nil
}

// joined keeps an entry that joined, or that left some of its locks, and returns it with the locks
// that it joined or left.
func (z *inZooKeeper) joined(place string, e *zooEntry, c zooChange) *zooEntry {
	before := z.there[place]
	z.there[place] = e
	if c.Narrowed == 0 || before == nil {
		return e
	}
	e.number = c.Narrowed
	left := *e
	left.locks = nil
	for _, name := range before.locks {
		if !slices.Contains(e.locks, name) {
			left.locks = append(left.locks, name)
		}
	}
	return &left
}

func (e *zooEntry) read(value []byte) error {
	var v entryValue
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	for _, c := range v.Claims {
		if c.Name != e.lock {
			e.locks = append(e.locks, c.Name)
		}
	}
	return nil
}

// path is that of the entry's node in one of its locks.
func (e *zooEntry) path(name string) string {
	shard := hash(e.tenant+","+name)%32*32 + hash(e.id)%32
	path := fmt.Sprintf("%s/entries/%03x/%s,%s,%s", zooRoot, shard, e.tenant, name, e.id)
	if name != e.lock {
		path += "," + e.lock
	}
	return path
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum32()
}

// position writes and then asks, in the same session, which never goes back.
func (z *inZooKeeper) position(ctx context.Context) (int64, error) {
	return within(ctx, func() (int64, error) {
		session := z.conn.SessionID()
		if _, err := z.conn.Set(zooSync, nil, -1); err != nil {
			return 0, err
		}
		length, err := z.length()
		if err == nil && z.conn.SessionID() != session {
			err = zk.ErrSessionExpired
		}
		return length, err
	})
}

// expire does what a replica does that has seen a lease end.
func (z *inZooKeeper) expire(ctx context.Context, place string) (bool, error) {
	z.mu.Lock()
	e := z.there[place]
	z.mu.Unlock()
	if e == nil {
		return false, nil
	}
	_, err := within(ctx, func() ([]zk.MultiResponse, error) { return z.remove(e) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

func (z *inZooKeeper) remove(e *zooEntry) ([]zk.MultiResponse, error) {
	for {
		leases, _, err := z.conn.Children(e.path(e.lock))
		if err != nil {
			return nil, err
		}
		results, err := z.conn.Multi(z.removal(e, leases)...)
		if !errors.Is(err, zk.ErrNotEmpty) { // or it was renewed for the first time
			return results, err
		}
	}
}

func (z *inZooKeeper) removal(e *zooEntry, leases []string) []any {
	data := fmt.Appendf(
		nil, `{"changes":[{"tenant":%q,"lock":%q,"id":%q,"czxid":%d,"reason":"expired","at_ms":%d}]}`,
		e.tenant, e.lock, e.id, e.number, time.Now().UnixMilli(),
	)
	var ops []any
	for _, name := range leases {
		ops = append(ops, &zk.DeleteRequest{Path: e.path(e.lock) + "/" + name, Version: -1})
	}
	for _, name := range e.locks {
		ops = append(ops, &zk.DeleteRequest{Path: e.path(name), Version: -1})
	}
	epoch := z.log[strings.LastIndex(z.log, "/")+1:]
	var version int32
	_, _ = fmt.Sscanf(epoch, "%d", &version) // it was printed by us
	return append(
		ops,
		&zk.CheckVersionRequest{Path: zooRoot + "/epoch", Version: version},
		&zk.CreateRequest{
			Path: z.log + "/", Data: data, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence,
		},
		&zk.SetDataRequest{Path: z.log, Data: data, Version: -1},
	)
}
