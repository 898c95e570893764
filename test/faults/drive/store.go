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

	"github.com/fencepost/fencepost/store"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/test/faults/history"
)

// awaitLimit is longer than any lease in the tests may last.
const awaitLimit = 40 * time.Second

// Store observes everything that happens in the store behind the service, in
// order, from the moment it is made.
type Store struct {
	source source
	tenant string
	now    func() time.Duration
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every event
	changes []history.Change
	places  map[string]string        // where the entries are that are there, by id
	queues  map[string][]string      // ids of the entries that are there, by lock
	left    map[string]time.Duration // when an entry was seen to leave
	at      int64                    // position of the newest event
	err     error                    // why it stopped observing
}

// source is the kind of store that is observed. Positions count up in the order
// of what is committed; what they count is the source's own.
type source interface {
	// run tells s of everything behind its position until ctx ends.
	run(ctx context.Context, s *Store)
	// position is no less than that of anything that was committed before the call.
	position(ctx context.Context) (int64, error)
	// expire removes the entry as the end of its lease does, unless it is gone.
	expire(ctx context.Context, place string) (removed bool, err error)
	close() error
}

// observe starts observing the entries of tenant behind a position.
func observe(
	ctx context.Context,
	from source,
	at int64,
	tenant string,
	now func() time.Duration,
) *Store {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Store{
		source: from, tenant: tenant, now: now, cancel: cancel, changed: make(chan struct{}), at: at,
		places: map[string]string{}, queues: map[string][]string{}, left: map[string]time.Duration{},
	}
	s.done.Go(func() { from.run(ctx, s) })
	return s
}

// Close stops observing.
func (s *Store) Close() error {
	s.cancel()
	err := s.source.close()
	s.done.Wait()
	return err
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

// change is one event, and where the entry that joined can be found.
type change struct {
	history.Change
	place string
}

// take records everything up to a position.
func (s *Store) take(upTo int64, changes []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = upTo
	for _, c := range changes {
		if c.Joined {
			s.places[c.Entry] = c.place
			s.queues[c.Lock] = append(s.queues[c.Lock], c.Entry)
		} else {
			delete(s.places, c.Entry)
			s.queues[c.Lock] = slices.DeleteFunc(
				s.queues[c.Lock], func(id string) bool { return id == c.Entry },
			)
			s.left[c.Entry] = c.At
		}
		s.changes = append(s.changes, c.Change)
	}
	s.tell()
}

// position is where the observation stands.
func (s *Store) position() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// entryValue is what both stores write of an entry, as far as the checks read it.
type entryValue struct {
	history.Claim
	Claims []struct {
		Name string
		history.Claim
	}
}

// home is where stores keep the value of an entry that takes any of several locks.
const home = "~any"

// claimOn reads what an entry asks of one of its locks.
func claimOn(name string, value []byte) history.Claim {
	var v entryValue
	if json.Unmarshal(value, &v) != nil {
		return history.Claim{} // which no check takes for one
	}
	for _, c := range v.Claims {
		if c.Name == name {
			return c.Claim
		}
	}
	return v.Claim
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

// Joined returns where entries joined locks with the prefix, of all that was committed before the
// call.
func (s *Store) Joined(ctx context.Context, prefix string) (positions []int64, err error) {
	if err := s.sync(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes {
		if c.Joined && strings.HasPrefix(c.Lock, prefix) {
			positions = append(positions, c.Revision)
		}
	}
	return positions, nil
}

// Compact has etcd forget what happened up to where the observation stands, and reports
// whether there was anything. No other store has that.
func (s *Store) Compact(ctx context.Context) (bool, error) {
	e, ok := s.source.(*inEtcd)
	if !ok {
		return false, nil
	}
	_, err := e.client.Compact(ctx, s.position())
	if errors.Is(err, rpctypes.ErrCompacted) {
		return false, nil
	}
	return err == nil, err
}

// sync waits until everything that is committed now has been observed.
func (s *Store) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	newest, err := s.source.position(ctx)
	for err != nil && store.Pause(ctx, 200*time.Millisecond) == nil { // an election may be under way
		newest, err = s.source.position(ctx)
	}
	if err != nil {
		return fmt.Errorf("sync with the store: %w", err)
	}
	return s.await(ctx, "the newest change", func() bool { return s.at >= newest })
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

// Expire takes the entry out of the store as the end of its lease does. It
// returns when the removal was committed at the latest.
func (s *Store) Expire(ctx context.Context, entry string) (time.Duration, error) {
	s.mu.Lock()
	place := s.places[entry]
	s.mu.Unlock()
	if place == "" {
		return 0, fmt.Errorf("expire %s: %w", entry, ErrNotThere)
	}
	removed, err := s.source.expire(ctx, place)
	if err != nil {
		return 0, fmt.Errorf("expire %s: %w", entry, err)
	}
	if !removed {
		return 0, fmt.Errorf("expire %s: %w", entry, ErrNotThere)
	}
	return s.now(), nil
}

// AwaitEmpty waits until no entry is left in any queue.
func (s *Store) AwaitEmpty(ctx context.Context) error {
	err := s.await(ctx, "empty queues", func() bool { return len(s.places) == 0 })
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("%w; still there: %v", err, slices.Collect(maps.Values(s.places)))
}
