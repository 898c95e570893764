package zookeeper

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/batch"
	"github.com/fencepost/fencepost/store/engine"
)

// MinTTL is the shortest lease that this store can honour. TTLs run only while the store answers,
// so an election does not use them up.
const MinTTL = 2 * time.Second

// operationTimeout is the default Timeout of a [Config].
const operationTimeout = 4 * time.Second

// Config configures a [Store].
type Config struct {
	Servers []string // host:port; names are resolved for every connection
	Chroot  string   // the existing path of everything; "" is the root
	Prefix  string   // the path below it, made on first use; "" is /fencepost/v1
	TLS     *tls.Config

	// Username and Password are for digest authentication. With them every node that the store makes
	// is for this user only; without them, for every client.
	Username, Password string

	Logger *slog.Logger // nil discards
	store.Observer

	// Timeout bounds every call, with as many attempts as fit; 0 is 4 s. Joining a queue may take up
	// to batch.MostPending longer while other writes proceed.
	Timeout time.Duration

	// FenceFloor is added to every zxid to give a number. The store keeps it. A greater one may be
	// given after the store lost its past; 0 keeps the stored one.
	FenceFloor uint64

	// Pending bounds the unsent writes; zero is [batch.Backlog]'s default.
	Pending batch.Backlog
}

// Store is the adapter; it satisfies store.Store. Several stores, in one or
// many processes, may share one ensemble and prefix.
type Store struct {
	reader  *reader
	observe store.Observer

	calls   *connector // for requests
	chores  *connector // for the upkeep, so that requests do not wait behind it
	stale   staleNodes // of broken connections, still to be deleted
	commits *committer
	cleaner *engine.Cleaner
	joins   *engine.Joins
	feed    *feed
	leases  *leases
	driver  *driver
	small   *engine.Records
	meta    *ownRecord
	archive *archive
	remover *remover
	joiner  *joiner
	teller  *teller

	closing context.Context
	stop    context.CancelFunc
	tasks   sync.WaitGroup
}

// Open connects, makes the missing parts of the store's own nodes, and starts to follow the log
// and to remove expired entries. It fails if no server answers within a few seconds, if the
// chroot is missing or its ACL excludes the store, or if cfg's fence floor cannot be right.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if len(cfg.Servers) == 0 {
		return nil, errors.New("no ZooKeeper server is given")
	}
	s := newStore(cfg)
	a := access{cfg.TLS, cfg.Username, cfg.Password}
	s.reader.reads = newConnector("feed", cfg.Servers, a, s.reader.log, nil)
	ctx, cancel := context.WithTimeout(ctx, 2*s.reader.timeout)
	defer cancel()
	if err := s.begin(ctx, cfg); err != nil {
		s.stop()
		s.reader.reads.close()
		return nil, err
	}
	s.calls = newConnector("calls", cfg.Servers, a, s.reader.log, s.fence)
	s.chores = newConnector("upkeep", cfg.Servers, a, s.reader.log, nil)
	s.driver.calls, s.driver.chores = s.calls, s.chores
	s.commits = newCommitter(s, cfg.Pending)
	s.archive = &archive{journal: s.reader.journal, chores: s.chores, feed: s.feed}
	s.teller = &teller{reader: s.reader, chores: s.chores, archive: s.archive}
	s.remover = &remover{
		reader: s.reader, calls: s.calls, commits: s.commits, feed: s.feed, leases: s.leases,
	}
	s.cleaner = engine.NewCleaner(s.reader.log)
	s.joins = &engine.Joins{
		Store: s, Trust: s.reader.trust, Timeout: s.reader.timeout, Closing: s.closing,
		Cleaner: s.cleaner,
	}
	s.joiner = &joiner{
		reader: s.reader, calls: s.calls, commits: s.commits, admissions: &admissions{driver: s.driver},
	}
	s.tasks.Go(func() { s.feed.run(s.closing) })
	x := &expirer{leases: s.leases, reader: s.reader, calls: s.calls, remover: s.remover}
	s.tasks.Go(func() { x.run(s.closing) })
	u := &upkeep{journal: s.reader.journal, archive: s.archive}
	s.tasks.Go(func() { u.follow(s.closing) })
	reread := func(ctx context.Context) error { return s.reread(ctx, 0) }
	s.tasks.Go(func() { s.reader.trust.Attend(s.closing, reread) })
	s.tasks.Go(func() { u.tidy(s.closing) })
	w := &sweeper{driver: s.driver, now: s.leases.clock.now}
	s.tasks.Go(func() { w.run(s.closing) })
	return s, nil
}

func newStore(cfg Config) *Store {
	j := newJournal(newTree(cfg), store.NewTrust())
	s := &Store{reader: &reader{j}, observe: cfg.Observer.OrSilent()}
	s.closing, s.stop = context.WithCancel(context.Background())
	s.leases = newLeases()
	s.driver = &driver{journal: s.reader.journal, observe: s.observe}
	s.meta = &ownRecord{journal: s.reader.journal, Meta: engine.NewMeta(engine.MetaConfig{
		Driver: s.driver, Trust: s.reader.trust, Log: s.reader.log, Path: s.reader.root.meta(),
		Jump: epochJump,
	})}
	s.small = engine.NewRecords(s.driver, s.meta, s.reader.log)
	s.feed = newFeed(s)
	return s
}

// begin makes and reads the store's own nodes. It does not report an answer of the server, or
// damage in it, as a store that did not answer.
func (s *Store) begin(ctx context.Context, cfg Config) error {
	err := s.tryBegin(ctx, cfg)
	// Another replica was faster, another log is in use, or the connection broke.
	for (errors.Is(err, zk.ErrBadVersion) || broke(err)) && store.Pause(ctx, firstPause) == nil {
		err = s.tryBegin(ctx, cfg)
	}
	closed := errors.Is(err, zk.ErrNoAuth) || errors.Is(err, errRefused)
	switch {
	case err == nil:
		return nil
	case answered(err) && !closed:
		return fmt.Errorf("prepare %s: %w", s.reader.root, err)
	case ctx.Err() == nil && !closed:
		return err
	}
	return unavailable(err, "prepare "+string(s.reader.root), false)
}

func (s *Store) tryBegin(ctx context.Context, cfg Config) error {
	if err := s.reader.makeNodes(ctx); err != nil {
		return err
	}
	if err := s.reader.loadEpoch(ctx); err != nil {
		return err
	}
	return s.meta.Load(ctx, cfg.FenceFloor)
}

// Close ends the upkeep, the feed and the connections, and waits for them.
func (s *Store) Close() error {
	s.stop()
	s.small.Close()
	s.commits.Stop()
	s.cleaner.Close()
	s.tasks.Wait()
	s.calls.close()
	s.reader.reads.close()
	s.chores.close()
	s.commits.Close()
	return nil
}

// TokenKey returns the secret that signs the lock tokens. It is made on first use, and is the
// same for all replicas and after every restart.
func (s *Store) TokenKey() []byte { return s.meta.TokenKey() }

// Records returns the store's small records.
func (s *Store) Records() store.RecordStore { return s.small }

// Enqueue implements store.Store.
func (s *Store) Enqueue(
	ctx context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	return s.joins.Enqueue(ctx, e, s.joiner.begin(e))
}

func randomHandle() int64 {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the program instead
	return int64(binary.BigEndian.Uint64(raw[:])>>1 | 1)
}

// Newest implements store.Store.
func (s *Store) Newest(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.reader.timeout)
	defer cancel()
	stat, err := s.reader.barrier(ctx, s.calls)
	if err != nil {
		return 0, unavailable(err, "read the newest number", false)
	}
	return s.reader.number(stat.Mzxid), nil
}

// Queue implements store.Store. The feed answers once it has reached a number that is no older
// than the call. If it lags or is cut off, Queue reads the nodes.
func (s *Store) Queue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.reader.timeout)
	defer cancel()
	if entries, number, ok := s.feed.queue(ctx, s.calls, r); ok {
		return entries, number, nil
	}
	return s.readQueue(ctx, r)
}

func (s *Store) readQueue(ctx context.Context, r lock.Ref) ([]*lock.Entry, uint64, error) {
	for {
		snap, err := s.snapshotOf(ctx, r)
		if err == nil {
			return snap.sorted(), s.reader.number(snap.zxid), nil
		}
		if errors.Is(err, zk.ErrNoAuth) || store.Pause(ctx, firstPause) != nil {
			return nil, 0, unavailable(err, "read the queue", false)
		}
	}
}

func (s *Store) snapshotOf(ctx context.Context, r lock.Ref) (*snapshot, error) {
	l, err := s.calls.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.reader.snapshot(ctx, l, r)
}
