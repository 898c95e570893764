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
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
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

// StartEmbedded runs a member inside the process, with every write flushed to disk. The data
// belongs to this process alone. The member listens on no network; the owner of the data folder
// can have a copy by a socket in it, see [Backup].
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Conn, error) {
	conn, _, err := startEmbedded(ctx, cfg)
	return conn, err
}

func startEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Conn, *member, error) {
	release, err := claimDir(cfg.Dir)
	if err != nil {
		return nil, nil, err
	}
	server, err := startMember(ctx, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := newMember(server)
	m.tasks.Go(func() { m.compactAll(log) })
	m.tasks.Go(func() { m.attend(log) })
	m.backups.longest, m.backups.stall = longestBackup, stalledBackup
	m.backups.serve(m, cfg.Dir, log)
	conn := newConn(m.clients(func() error { return errors.Join(m.close(), release()) }))
	conn.admit, conn.size, conn.local = m.admit, m.size, true
	return conn, m, nil
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
	return fmt.Errorf("the embedded store does not start: %w; if its data in %s is damaged, %s",
		why, cfg.Dir, remedyOfDamage)
}

// launch starts etcd, which panics over a log that it finds empty or without a beginning, and
// ends the process over other things, without a word if there is no log: meanwhile that is a
// panic too.
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
	log := etcdLog(cfg.Logger).WithOptions(zap.WithFatalHook(lastWords{&launching}))
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
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
	kv     pb.KVClient

	history history // of the task that compacts
	room    room
	backups backups

	ctx   context.Context //nolint:containedctx // ends when the member is closed
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

func newMember(server *embed.Etcd) *member {
	m := &member{etcd: server, server: server.Server}
	m.kv = adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(m.server))
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// clients returns clients that call the member as v3client does, which does not offer the raw
// ones.
func (m *member) clients(end func() error) clients {
	watch := adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(m.server))
	base := clientv3.NewCtxClient(m.ctx, clientv3.WithZapLogger(zap.NewNop()))
	watcher := func() clientv3.Watcher { return clientv3.NewWatchFromWatchClient(watch, base) }
	return clients{
		kv: m.kv, leases: adapter.LeaseServerToLeaseClient(v3rpc.NewQuotaLeaseServer(m.server)),
		watcher: watcher, pastWatcher: watcher, close: end,
	}
}

func (m *member) close() error {
	m.stop()
	err := m.backups.close()
	m.etcd.Close()
	m.tasks.Wait()
	return err
}

// each calls do every interval until the member is closed.
func (m *member) each(interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// attend makes room when the store is full, until the member is closed.
func (m *member) attend(log *slog.Logger) {
	m.each(attendInterval, func() { m.room.attend(m, log) })
}
