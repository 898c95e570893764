package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/test/faults/history"
)

// The layout of the store under test: entries/<tenant>/<lock>/<id>, and ended/…
// with a list of ends, written in the transaction of the removals.
const (
	entriesDir = "/entries/"
	endedDir   = "/ended/"
	syncKey    = "/faults/sync"
)

// awaitLimit is longer than any lease in the tests may last.
const awaitLimit = 40 * time.Second

// Store observes everything that happens in the etcd behind the service, in
// order, from the moment it is made.
type Store struct {
	client *clientv3.Client
	tenant string
	now    func() time.Duration
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every event
	changes []history.Change
	keys    map[string]string        // of the entries that are there, by id
	queues  map[string][]string      // ids of the entries that are there, by lock
	left    map[string]time.Duration // when an entry was seen to leave
	at      int64                    // revision of the newest event
	err     error                    // why it stopped observing
}

// Observe starts observing the entries of tenant. The client is closed by Close.
func Observe(ctx context.Context, client *clientv3.Client, tenant string, now func() time.Duration) (*Store, error) {
	resp, err := client.Get(ctx, syncKey)
	if err != nil {
		return nil, fmt.Errorf("observe the store: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Store{
		client: client, tenant: tenant, now: now, cancel: cancel,
		changed: make(chan struct{}), at: resp.Header.Revision,
		keys: map[string]string{}, queues: map[string][]string{}, left: map[string]time.Duration{},
	}
	s.done.Go(func() { s.run(ctx) })
	return s, nil
}

// Close stops observing.
func (s *Store) Close() error {
	s.cancel()
	s.done.Wait()
	return s.client.Close()
}

// run watches; the client resumes a broken watch by itself, a closed one is
// opened again where it ended.
func (s *Store) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		from := s.at + 1
		s.mu.Unlock()
		watch := s.client.Watch(clientv3.WithRequireLeader(ctx), "", clientv3.WithPrefix(), clientv3.WithRev(from))
		for resp := range watch {
			if resp.CompactRevision != 0 {
				s.fail(fmt.Errorf("the store was compacted to %d before it was observed", resp.CompactRevision))
				return
			}
			s.take(resp.Events)
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.tell()
}

// tell wakes those who wait; the caller holds mu.
func (s *Store) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// take records a run of events. The removals of one transaction and the record
// of their reasons arrive in one run.
func (s *Store) take(events []*clientv3.Event) {
	at := s.now()
	reasons := reasons(events)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ev := range events {
		s.at = ev.Kv.ModRevision
		key := string(ev.Kv.Key)
		lock, entry, ok := s.split(key)
		if !ok {
			continue
		}
		c := history.Change{Lock: lock, Entry: entry, Revision: ev.Kv.ModRevision, At: at}
		if ev.Type == clientv3.EventTypePut {
			c.Joined, c.Rewritten = true, !ev.IsCreate()
			c.Mode, c.Limit = modeOn(lock, ev.Kv.Value)
			s.keys[entry] = key
			s.queues[lock] = append(s.queues[lock], entry)
		} else {
			c.Reason = reasons[entry]
			delete(s.keys, entry)
			s.queues[lock] = slices.DeleteFunc(s.queues[lock], func(id string) bool { return id == entry })
			s.left[entry] = at
		}
		s.changes = append(s.changes, c)
	}
	s.tell()
}

// modeOn reads what an entry asks of one of its locks.
func modeOn(name string, value []byte) (mode string, limit int) {
	var v struct {
		Mode   string
		Limit  int
		Claims []struct {
			Name  string
			Mode  string
			Limit int
		}
	}
	if json.Unmarshal(value, &v) != nil {
		return "", 0 // which no check takes for a mode
	}
	for _, c := range v.Claims {
		if c.Name == name {
			return c.Mode, c.Limit
		}
	}
	return v.Mode, v.Limit
}

func reasons(events []*clientv3.Event) map[string]string {
	found := map[string]string{}
	for _, ev := range events {
		var ends []struct{ ID, Reason string }
		if strings.Contains(string(ev.Kv.Key), endedDir) && json.Unmarshal(ev.Kv.Value, &ends) == nil {
			for _, e := range ends {
				found[e.ID] = e.Reason
			}
		}
	}
	return found
}

func (s *Store) split(key string) (lock, entry string, ok bool) {
	_, rest, ok := strings.Cut(key, entriesDir+s.tenant+"/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// Truth returns the history up to now: everything that was committed before the call.
func (s *Store) Truth(ctx context.Context) (*history.Truth, error) {
	if err := s.sync(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return history.NewTruth(s.changes)
}

// sync waits until everything that is committed now has been observed.
func (s *Store) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	resp, err := s.client.Put(ctx, syncKey, "")
	for err != nil && pause(ctx, 200*time.Millisecond) { // an election may be under way
		resp, err = s.client.Put(ctx, syncKey, "")
	}
	if err != nil {
		return fmt.Errorf("sync with the store: %w", err)
	}
	return s.await(ctx, "the newest revision", func() bool { return s.at >= resp.Header.Revision })
}

// await waits until the condition, which is called under mu, holds. What has not
// come after awaitLimit does not come any more.
func (s *Store) await(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for {
		s.mu.Lock()
		ok, err, changed := condition(), s.err, s.changed
		s.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s in the store: %w", what, ctx.Err())
		}
	}
}

// AwaitQueue waits until the queue of the lock has exactly n entries and returns
// their ids in the order of their places.
func (s *Store) AwaitQueue(ctx context.Context, lock string, n int) (ids []string, err error) {
	err = s.await(ctx, fmt.Sprintf("%d entries of %s", n, lock), func() bool {
		ids = slices.Clone(s.queues[lock])
		return len(ids) == n
	})
	return ids, err
}

// AwaitBehind waits until exactly one entry stands behind head in the queue of the
// lock, and returns its id. Naming the head keeps a queue of before, which this
// observer has not yet seen empty, from being taken for the one of now.
func (s *Store) AwaitBehind(ctx context.Context, lock, head string) (id string, err error) {
	err = s.await(ctx, "an entry of "+lock+" behind "+head, func() bool {
		ids := s.queues[lock]
		if len(ids) != 2 || ids[0] != head {
			return false
		}
		id = ids[1]
		return true
	})
	return id, err
}

// AwaitLeft waits until the entry is gone and returns when that was observed.
func (s *Store) AwaitLeft(ctx context.Context, entry string) (at time.Duration, err error) {
	err = s.await(ctx, "the removal of "+entry, func() bool {
		seen, gone := s.left[entry]
		at = seen
		return gone
	})
	return at, err
}

// ErrNotThere says that an entry that was to be removed had left before.
var ErrNotThere = errors.New("the entry is not there")

// Expire takes the entry out of the store, with nothing that says why, as etcd
// does when its lease ends. It returns when the removal was committed at the latest.
func (s *Store) Expire(ctx context.Context, entry string) (time.Duration, error) {
	s.mu.Lock()
	key := s.keys[entry]
	s.mu.Unlock()
	if key == "" {
		return 0, fmt.Errorf("expire %s: %w", entry, ErrNotThere)
	}
	resp, err := s.client.Delete(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("expire %s: %w", entry, err)
	}
	if resp.Deleted != 1 {
		return 0, fmt.Errorf("expire %s: %w", entry, ErrNotThere)
	}
	return s.now(), nil
}

// AwaitEmpty waits until no entry is left in any queue.
func (s *Store) AwaitEmpty(ctx context.Context) error {
	err := s.await(ctx, "empty queues", func() bool { return len(s.keys) == 0 })
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("%w; still there: %v", err, slices.Collect(maps.Values(s.keys)))
}
