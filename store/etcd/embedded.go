package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	etcdlease "go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
)

const (
	memberName   = "fencepost"
	dataDir      = "etcd"           // in the data folder
	lockFile     = "lock"           // beside it
	startTimeout = 60 * time.Second // replaying a long log takes a while

	// DefaultQuota bounds the embedded store's data file, in bytes.
	DefaultQuota = 4 << 30

	// keptInMemory is how many of the transactions that were written last etcd keeps in
	// memory, beside up to a hundred more. They are for members that lag behind, of which
	// there are none, and each may be as large as batchBytes: the 5,000 that etcd keeps by
	// default could take 2.5 GB. 0 would be that default.
	keptInMemory = 10
)

// EmbeddedConfig says where and how large the embedded store is.
type EmbeddedConfig struct {
	Dir    string // made if it is not there; what we put into it only its owner can read
	Quota  int64  // bytes of the data file, 0 is DefaultQuota
	Logger *slog.Logger
}

// StartEmbedded runs a member inside the process, with every write flushed to
// disk. Calls to it are function calls, and the data belongs to this process alone. It
// listens on no network; who owns the data folder can have a copy by a socket in it, see
// [Backup].
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Conn, error) {
	release, err := claimDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	server, err := startMember(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	m := &member{etcd: server, server: server.Server, lifetimes: newLifetimes()}
	m.kv = v3rpc.NewQuotaKVServer(m.server)
	m.ctx, m.stop = context.WithCancel(context.Background())
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m.tasks.Go(func() { m.maintain(log) })
	m.tasks.Go(func() { m.lifetimes.expireAll(m.ctx) })
	m.backups.longest, m.backups.stall = longestBackup, stalledBackup
	m.backups.serve(m, cfg.Dir, log)
	return &Conn{
		kv: counted{m.kv, &m.written}, leases: v3rpc.NewQuotaLeaseServer(m.server), renewer: m, watch: m.watch, watchPast: m.watchRange, hold: m.holds.begin, admit: m.admit, size: m.size, local: true, slack: localSlack, lifetimes: m.lifetimes,
		close: func() error { return errors.Join(m.close(), release()) },
	}, nil
}

// claimDir makes the folder and holds it against other processes: etcd itself
// would wait for the other one without end. What is in it already, and who may see
// that, is not ours to change (a volume may be shared with others); the folder in
// it that holds the data is.
func claimDir(dir string) (release func() error, err error) {
	own := filepath.Join(dir, dataDir)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder cannot be made: %w", err)
	}
	if err := os.Chmod(own, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder cannot be closed to others: %w", err)
	}
	f, err := fileutil.TryLockFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, fmt.Errorf("the data folder %s is %w", dir, errInUse)
	case err != nil:
		return nil, fmt.Errorf("the data folder %s is not writable: %w", dir, err)
	}
	return f.Close, nil
}

var errInUse = errors.New("in use by another process")

func startMember(ctx context.Context, cfg EmbeddedConfig) (*embed.Etcd, error) {
	if err := errors.Join(clearUnbegun(cfg.Dir), checkData(cfg.Dir)); err != nil {
		return nil, err
	}
	server, err := launch(cfg)
	if err != nil {
		return nil, doesNotStart(cfg, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(startTimeout):
		err = errors.New("it did not become ready in time")
	}
	server.Close()
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("the embedded store does not start: %w", err)
	}
	return nil, doesNotStart(cfg, err)
}

func doesNotStart(cfg EmbeddedConfig, why error) error {
	return fmt.Errorf("the embedded store does not start: %w; if its data in %s is damaged, %s", why, cfg.Dir, remedyOfDamage)
}

// launch starts etcd, which panics over a log that it finds empty or without a beginning, and
// ends the process over other things, without a word if there is no log: meanwhile that is a panic too.
func launch(cfg EmbeddedConfig) (server *embed.Etcd, err error) {
	var launching atomic.Bool
	launching.Store(true)
	defer func() {
		launching.Store(false)
		if r := recover(); r != nil {
			err = fmt.Errorf("etcd cannot use its files: %v", r)
		}
	}()
	c := memberConfig(cfg)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLog(cfg.Logger).WithOptions(zap.WithFatalHook(lastWords{&launching})))
	return embed.StartEtcd(c)
}

func memberConfig(cfg EmbeddedConfig) *embed.Config {
	c := embed.NewConfig()
	c.Name, c.Dir = memberName, filepath.Join(cfg.Dir, dataDir)
	c.ListenClientUrls, c.ListenPeerUrls = nil, nil
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// The cluster's id is derived from the token; a random one makes it unique.
	c.InitialClusterToken = "fencepost-" + randomHex()
	c.QuotaBackendBytes = DefaultQuota
	if cfg.Quota > 0 {
		c.QuotaBackendBytes = cfg.Quota
	}
	c.MaxTxnOps = maxTxnOps
	c.SnapshotCatchUpEntries = keptInMemory
	return c
}

func randomHex() string {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(fmt.Sprintf("bug: crypto/rand does not fail: %v", err))
	}
	return hex.EncodeToString(b)
}

// member is the embedded server with what this package adds to it.
type member struct {
	etcd   *embed.Etcd
	server *etcdserver.EtcdServer
	kv     pb.KVServer

	history     history      // of the task that maintains
	compactions compactions  // likewise
	written     atomic.Int64 // bytes of history that it was asked to write
	holds       holds
	room        room
	backups     backups
	lifetimes   *lifetimes

	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

// maxHold is for how long compaction is held back at most, which bounds what a feed
// that never gets through its list costs.
const maxHold = time.Minute

// holds are the feeds that read a list, for which history must not be compacted.
type holds struct {
	mu    sync.Mutex
	since map[*time.Time]struct{}
}

func (h *holds) begin() (release func()) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since == nil {
		h.since = map[*time.Time]struct{}{}
	}
	h.since[&now] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.since, &now)
	}
}

// any reports whether one is under way that has not taken too long.
func (h *holds) any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at := range h.since {
		if time.Since(*at) < maxHold {
			return true
		}
	}
	return false
}

func (m *member) close() error {
	m.stop()
	err := m.backups.close()
	m.etcd.Close()
	m.tasks.Wait()
	return err
}

// renew implements renewer by a function call. Where the lease may have expired,
// the call runs beside the caller: etcd waits, without regard to ctx, for a lease
// that is expired but not yet revoked.
func (m *member) renew(ctx context.Context, id int64, lives bool) error {
	renewed, ok := m.lifetimes.renewing(id)
	if !ok {
		return errLeaseGone
	}
	ask := func() error {
		err := m.leaseRenew(ctx, id)
		renewed(err)
		return err
	}
	if lives {
		return ask()
	}
	done := make(chan error, 1)
	go func() { done <- ask() }() // ends when etcd revokes the lease or stops
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *member) leaseRenew(ctx context.Context, id int64) error {
	_, err := m.server.LeaseRenew(ctx, etcdlease.LeaseID(id))
	if errors.Is(err, etcdlease.ErrLeaseNotFound) {
		return errLeaseGone
	}
	return err
}

// watch implements watchFunc on the member's own watch stream.
func (m *member) watch(ctx context.Context, prefix string, from int64) watch {
	return m.watchRange(ctx, prefix, string(prefixEnd(prefix)), from)
}

func (m *member) watchRange(ctx context.Context, first, end string, from int64) watch {
	stream := m.server.Watchable().NewWatchStream()
	out := make(chan watchMessage)
	id, err := stream.Watch(ctx, 0, []byte(first), []byte(end), from)
	m.tasks.Go(func() {
		defer close(out)
		defer stream.Close()
		if err != nil {
			send(ctx, out, watchMessage{err: err})
			return
		}
		for {
			select {
			case r := <-stream.Chan():
				if !send(ctx, out, message(r)) {
					return
				}
			case <-ctx.Done():
				return
			case <-m.ctx.Done():
				return
			}
		}
	})
	return watch{messages: out, ask: func() { stream.RequestProgress(id) }}
}

func message(r mvcc.WatchResponse) watchMessage {
	m := watchMessage{events: r.Events, revision: r.Revision}
	if r.CompactRevision != 0 {
		m.err = errCompacted
	}
	if len(r.Events) > 0 {
		m.revision = r.Events[len(r.Events)-1].Kv.ModRevision
	}
	return m
}

var errCompacted = errors.New("the watch fell behind a compaction")

func send(ctx context.Context, out chan<- watchMessage, m watchMessage) bool {
	select {
	case out <- m:
		return true
	case <-ctx.Done():
		return false
	}
}

// maintain compacts, and makes room again when the store is full, until the
// member is closed.
func (m *member) maintain(log *slog.Logger) {
	tick := time.NewTicker(compactInterval)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
			if err := m.compactSome(time.Now()); err != nil && m.ctx.Err() == nil {
				log.Warn("the embedded store could not be compacted", "error", err)
			}
			m.room.attend(m, log)
		}
	}
}
