package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.uber.org/zap"
)

const (
	memberName   = "fencepost"
	startTimeout = 60 * time.Second // replaying a long log takes a while

	// DefaultQuota bounds the embedded store's data file, in bytes.
	DefaultQuota = 4 << 30

	// keptInMemory is how many of the latest transactions, and up to a hundred more, etcd keeps in
	// memory for lagging members. A lone member has none. etcd's default of 5 000 could take 2.5 GB
	// of the size of batchBytes; 0 would be that default.
	keptInMemory = 10

	// tick and election are raft's. A lone member elects itself after up to two elections, and is
	// ready only then. With etcd's default of 1 s that is most of a start.
	tick     = 50 * time.Millisecond
	election = 250 * time.Millisecond
)

// EmbeddedConfig configures the embedded store.
type EmbeddedConfig struct {
	Dir    string // made if missing; only its owner can read what the store puts into it
	Quota  int64  // bytes of the data file, 0 is DefaultQuota
	Logger *slog.Logger
}

// StartEmbedded runs a member inside the process, and flushes every write to disk. The data
// belongs to this process alone. The member listens on no network. The owner of the data folder
// can get a copy through a socket in it, see [Backup].
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Conn, error) {
	conn, _, err := startEmbedded(ctx, cfg)
	return conn, err
}

func startEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Conn, *member, error) {
	release, err := claimDir(cfg.Dir)
	if err != nil {
		return nil, nil, err
	}
	if err := begin(cfg.Dir, starting); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	server, err := startMember(ctx, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	conn, m := newMember(server)
	end := conn.close
	conn.close = func() error { return errors.Join(end(), release()) }
	if err := begun(cfg.Dir); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m.tasks.Go(func() { m.compactAll(log) })
	m.tasks.Go(func() { m.each(tidyInterval, func() { m.attend(log) }) })
	m.listenForBackups(cfg.Dir, log)
	return conn, m, nil
}

// startMember starts etcd in a data folder that this process has locked.
func startMember(ctx context.Context, cfg EmbeddedConfig) (*embed.Etcd, error) {
	if err := checkData(cfg.Dir); err != nil {
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

// launch starts etcd and returns its failures as errors. etcd panics over a log that is empty or
// lacks its beginning, and would end the process over other damage.
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
	c.InitialClusterToken = "fencepost-" + rand.Text()
	c.QuotaBackendBytes = DefaultQuota
	if cfg.Quota > 0 {
		c.QuotaBackendBytes = cfg.Quota
	}
	c.TickMs, c.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	c.MaxTxnOps = maxTxnOps
	c.SnapshotCatchUpEntries = keptInMemory
	return c
}

// member is the embedded server with its maintenance.
type member struct {
	etcd   *embed.Etcd
	server *etcdserver.EtcdServer
	kv     pb.KVClient
	room   room

	// copying is held while the data file is copied or defragmented.
	copying  sync.Mutex
	tidied   time.Time // when it was last defragmented
	copies   sync.WaitGroup
	listener net.Listener // for backups; nil if there is none

	ctx   context.Context //nolint:containedctx // ends when the member is closed
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

// newMember returns a member, and a connection to it. It calls the member as v3client does, which
// does not offer the raw clients.
func newMember(server *embed.Etcd) (*Conn, *member) {
	m := &member{etcd: server, server: server.Server}
	m.kv = adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(m.server))
	m.ctx, m.stop = context.WithCancel(context.Background())
	watch := adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(m.server))
	base := clientv3.NewCtxClient(m.ctx, clientv3.WithZapLogger(zap.NewNop()))
	watcher := func() clientv3.Watcher { return clientv3.NewWatchFromWatchClient(watch, base) }
	conn := newConn(clients{
		kv: m.kv, leases: adapter.LeaseServerToLeaseClient(v3rpc.NewQuotaLeaseServer(m.server)),
		watcher: watcher, close: m.close,
	})
	conn.local, conn.size = true, m.size
	conn.admit = func(bytes int) bool { return m.room.admit(bytes, m.size()) }
	return conn, m
}

func (m *member) close() error {
	m.stop()
	var err error
	if m.listener != nil {
		err = m.listener.Close()
	}
	m.copies.Wait() // the data file cannot be closed before
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
