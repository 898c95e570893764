package etcd

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// MinTTL is the shortest lease that etcd honours: 1.5 election timeouts, which is 2 s by default.
// It raises shorter ones silently.
const MinTTL = 2 * time.Second

// defaultPrefix starts every key of Fencepost.
const defaultPrefix = "/fencepost/v1/"

// Config configures a [Store].
type Config struct {
	Prefix string       // of all keys, ending in a slash; "" is /fencepost/v1/
	Logger *slog.Logger // nil discards
	store.Observer

	// Timeout bounds every call, with as many attempts as fit; 0 is 4 s.
	Timeout time.Duration

	// FenceFloor is added to every revision to give a number. The store keeps it. A greater one may
	// be given after the store lost its past; 0 keeps the stored one.
	FenceFloor uint64

	// Pending bounds the unsent writes; zero is [batch.Backlog]'s default.
	Pending batch.Backlog
}

// Store is the adapter; it satisfies store.Store. Several stores, in one or
// many processes, may share one etcd and prefix.
type Store struct {
	*keyspace
	ends    *ends
	feed    *feed
	driver  *driver
	meta    *engine.Meta
	leases  *leasePool
	writer  *writer
	commits *committer
	cleaner *engine.Cleaner
	joins   *engine.Joins
	records *engine.Records

	closing context.Context
	stop    context.CancelFunc
	tasks   sync.WaitGroup
}

// Open reads the store's own record, or writes it on first use, and starts the maintenance. It
// fails if etcd does not answer, or if cfg's fence floor cannot be right. The caller closes the
// store, then conn.
func Open(ctx context.Context, conn *Conn, cfg Config) (*Store, error) {
	s := newStore(conn, cfg)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.meta.Load(ctx, cfg.FenceFloor); err != nil {
		s.stop()
		if unread := (*engine.Unread)(nil); errors.As(err, &unread) {
			return nil, unavailable(err, "read the store's own record", false)
		}
		return nil, err
	}
	_ = s.writer.ready(ctx, 0) // a full store has no space for it; the first entry tries again
	s.cleaner = engine.NewCleaner(s.log)
	s.joins = &engine.Joins{
		Store: s, Trust: s.trust, Timeout: s.timeout, Closing: s.closing, Cleaner: s.cleaner,
	}
	s.tasks.Go(func() { every(s.closing, upkeepInterval, s.ends.recordEnds) })
	// apart from recordEnds: there may be many leases, and an unanswered renewal takes long
	s.tasks.Go(func() {
		every(s.closing, idleInterval, func() { s.leases.maintain(s.closing) })
	})
	s.tasks.Go(func() { conn.checkVersions(s.closing, s.log) })
	s.tasks.Go(func() {
		s.trust.Attend(s.closing, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, s.timeout)
			defer cancel()
			return s.meta.Reread(ctx)
		})
	})
	return s, nil
}

func newStore(conn *Conn, cfg Config) *Store {
	s := &Store{keyspace: newKeyspace(conn, cfg), leases: newLeasePool(conn)}
	s.closing, s.stop = context.WithCancel(context.Background())
	s.driver = &driver{s.keyspace, s.leases}
	s.meta = engine.NewMeta(engine.MetaConfig{
		Driver: s.driver, Trust: s.trust, Log: s.log, Path: s.prefix + engine.MetaKey().Name,
		Jump: RestoredBump,
	})
	s.leases.longer = warnOfElections(s.log)
	s.ends = &ends{keyspace: s.keyspace, closing: s.closing, memory: newMemory(s.leases.tryGrant)}
	s.feed = &feed{keyspace: s.keyspace, ends: s.ends, meta: s.meta, behind: make(chan struct{}, 1)}
	s.writer = newWriter(s.keyspace, s.ends.memory)
	s.records = engine.NewRecords(s.driver, s.meta, s.log)
	s.commits = (&committer{
		prefix: s.prefix, ctx: s.closing, trusted: ownRecord{s.driver, s.meta}, pending: cfg.Pending,
		own: &s.own, writer: s.writer,
		observe: func(writes int, took time.Duration, err error) {
			s.observe.Batch(writes)
			s.observe.Operation("commit", took, err)
		},
	}).over(s.kv, conn.local)
	s.commits.Sending = s.observe.Sending
	return s
}

// Records returns the store's small records.
func (s *Store) Records() store.RecordStore { return s.records }

// TokenKey returns the secret that signs the lock tokens. It is made on first use, and is the
// same for all replicas and after every restart.
func (s *Store) TokenKey() []byte { return s.meta.TokenKey() }

// Close ends the maintenance and the writes in flight, and waits for both. Feeds end by their own
// contexts.
func (s *Store) Close() error {
	s.stop()
	s.records.Close()
	s.cleaner.Close()
	s.tasks.Wait()
	s.leases.grants.Close()
	s.commits.Close()
	return nil
}

// Enqueue implements store.Store.
func (s *Store) Enqueue(
	ctx context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	val := store.Encode(store.ValueOf(e))
	if !s.conn.hasRoom(len(val) + len(e.Claims)*keyRoom) {
		return nil, false, unavailable(rpctypes.ErrGRPCNoSpace, "enqueue", false)
	}
	placed, written, err = s.joins.Enqueue(ctx, e, &joining{store: s, entry: e, value: val})
	if err == nil && written { // the lease of a removed entry ends, and must not be reused
		s.leases.confirm(placed)
	}
	return placed, written, err
}

// Remove implements store.Store.
func (s *Store) Remove(
	ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry,
) error {
	return engine.Remove(ctx, s.timeout, &removing{store: s, entry: e, why: why, while: while})
}

// endLease ends a lease that is not reused. etcd itself ends at most 1 000 leases a second, so
// those of dead holders would wait behind these.
func (s *Store) endLease(e *lock.Entry, lease int64) {
	s.cleaner.Add(func(ctx context.Context) error { return s.leases.revoke(ctx, lease) }, e.TTL)
}

// left reuses the lease of a removed entry, or ends it.
func (s *Store) left(e *lock.Entry, why lock.Reason) {
	if !s.leases.left(e, why) {
		s.endLease(e, e.Handle)
	}
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, e *lock.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		start := time.Now()
		err := s.conn.renewer.renew(ctx, e.Handle)
		s.observe.Operation("renew", time.Since(start), err)
		if err != nil && !isLeaseNotFound(err) {
			return unavailable(err, "renew", false)
		}
		if err == nil {
			s.leases.refreshed(e.Handle, start)
			// A lease that answers does not prove that its keys exist (etcd #14758).
			return s.prove(ctx, e)
		}
		if err := s.proveLeased(ctx, e); err != nil {
			return err
		}
		if store.Pause(ctx, renewPause) != nil {
			return unavailable(err, "renew", false)
		}
	}
}

// proveLeased is [Store.prove] for an entry whose lease etcd does not know. A leader that was
// just elected may not know the lease yet, so the entry may still exist. It must exist under that
// lease.
func (ks *keyspace) proveLeased(ctx context.Context, e *lock.Entry) error {
	resp, err := ks.read(ctx, "check", &pb.RangeRequest{Key: ks.primaryKey(e)})
	if err != nil {
		return unavailable(err, "check entry", false)
	}
	if !ks.isAt(e, resp.Kvs) || resp.Kvs[0].Lease != e.Handle {
		return store.Lost("the lease has ended")
	}
	return nil
}

// renewPause is the pause before another renewal of an unknown lease whose entry exists.
const renewPause = 100 * time.Millisecond

// Remaining implements store.Store. The leader answers from memory, in whole seconds. The lease
// may already carry another entry, so Remaining also reads the entry.
func (s *Store) Remaining(ctx context.Context, e *lock.Entry) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	resp, err := s.conn.leases.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: e.Handle})
	switch {
	case isLeaseNotFound(err) || err == nil && resp.TTL < 0:
		if err := s.proveLeased(ctx, e); err != nil {
			return 0, err
		}
		return 0, unavailable(errLeaseGone, "ask for the lease", false)
	case err != nil:
		return 0, unavailable(err, "ask for the lease", false)
	}
	if err := s.prove(ctx, e); err != nil {
		return 0, err
	}
	slack := time.Duration(resp.GrantedTTL)*time.Second - e.TTL // not promised to any holder
	return max(0, min(time.Duration(resp.TTL)*time.Second-slack, e.TTL)), nil
}

// prove reads whether exactly the entry e exists.
func (ks *keyspace) prove(ctx context.Context, e *lock.Entry) error {
	resp, err := ks.read(ctx, "check", &pb.RangeRequest{Key: ks.primaryKey(e), KeysOnly: true})
	if err != nil {
		return unavailable(err, "check entry", false)
	}
	if !ks.isAt(e, resp.Kvs) {
		return store.Lost("the entry is not in the queue")
	}
	return nil
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, f store.Watcher) { s.feed.Watch(ctx, f) }

// Newest implements store.Store.
func (s *Store) Newest(ctx context.Context) (uint64, error) {
	revision, err := s.newest(ctx)
	if err != nil {
		return 0, unavailable(err, "read the newest revision", false)
	}
	if s.feed.at.Load() < revision {
		select {
		case s.feed.behind <- struct{}{}:
		default: // it is already being asked
		}
	}
	return s.number(revision), nil
}
