package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// startTimeout bounds every start and restart, on top of the caller's context.
const startTimeout = 30 * time.Second

// EtcdConfig says which cluster to start.
type EtcdConfig struct {
	// Members is the number of servers, 1 when zero.
	Members int
	// Dir holds the members' data and logs, in folders etcd-0, etcd-1, …
	Dir string
	// Binary is the etcd server, see BuildEtcd.
	Binary string
	// ExtraArgs are added to each member's command line.
	ExtraArgs []string
	// QuotaBytes is the size at which a member refuses writes; 0 keeps etcd's default.
	QuotaBytes int64
	// PeerProxies puts a proxy before each member's peer port, see [Member.PeerProxy].
	PeerProxies bool
}

// Etcd is a running cluster of etcd processes with fsync on.
type Etcd struct {
	members []*Member
	ports   []*port
}

// StartEtcd starts the members, in its turn, and returns when each of them serves
// linearizable reads. A port that was taken in the last moment leads to another try.
func StartEtcd(ctx context.Context, config EtcdConfig) (*Etcd, error) {
	unlock, err := startAlone(ctx)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	defer func() { _ = unlock() }()
	config.Members = max(config.Members, 1)
	var errs []error
	for range 3 {
		e, err := startEtcd(ctx, config)
		if err == nil {
			return e, nil
		}
		errs = append(errs, err)
		if !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	return nil, fmt.Errorf("start etcd: %w", errors.Join(errs...))
}

func startEtcd(ctx context.Context, config EtcdConfig) (*Etcd, error) {
	ports, err := reservePorts(2 * config.Members)
	if err != nil {
		return nil, err
	}
	e := &Etcd{ports: ports}
	peers, err := peerProxies(config, ports)
	if err != nil {
		return nil, errors.Join(err, releasePorts(ports))
	}
	for i := range config.Members {
		e.members = append(e.members, newMember(i, config, ports, peers))
	}
	for _, m := range e.members {
		if err := m.prepare(); err != nil {
			return nil, errors.Join(err, e.Close())
		}
		if err := m.start(); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	for _, m := range e.members {
		if err := m.awaitHealthy(ctx); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// peerProxies starts what stands before the members' peer ports, if they shall have it.
func peerProxies(config EtcdConfig, ports []*port) ([]*Proxy, error) {
	peers := make([]*Proxy, config.Members)
	for i := 0; config.PeerProxies && i < config.Members; i++ {
		p, err := StartProxy(ports[2*i+1].address())
		if err != nil {
			return nil, errors.Join(err, closeAll(peers[:i]))
		}
		peers[i] = p
	}
	return peers, nil
}

func closeAll(proxies []*Proxy) error {
	var errs []error
	for _, p := range proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Endpoints returns the members' client addresses as host:port.
func (e *Etcd) Endpoints() []string {
	var endpoints []string
	for _, m := range e.members {
		endpoints = append(endpoints, m.client.address())
	}
	return endpoints
}

// Store returns the value of the API server's --store flag for this cluster.
func (e *Etcd) Store() string { return "etcd://" + strings.Join(e.Endpoints(), ",") }

// Size returns the number of members, running or not.
func (e *Etcd) Size() int { return len(e.members) }

// Member returns member i, counted from 0.
func (e *Etcd) Member(i int) *Member { return e.members[i] }

// Leader returns the index of the member that leads, in the eyes of a majority
// of the members that answer. It waits for an election to end, until ctx ends.
func (e *Etcd) Leader(ctx context.Context) (int, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if i, ok := e.leader(ctx); ok {
			return i, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("find the leader of etcd: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// leader asks the running members who leads. A deposed leader that does not
// know it yet is outvoted.
func (e *Etcd) leader(ctx context.Context) (int, bool) {
	votes, ids := map[uint64]int{}, map[uint64]int{}
	for i, m := range e.members {
		status, err := m.status(ctx)
		if err != nil {
			continue
		}
		ids[status.Header.MemberId] = i
		votes[status.Leader]++
	}
	for id, n := range votes {
		if i, known := ids[id]; known && n > len(e.members)/2 {
			return i, true
		}
	}
	return 0, false
}

// Client returns a client of the cluster; the caller closes it.
func (e *Etcd) Client() (*clientv3.Client, error) { return newClient(e.Endpoints()...) }

func newClient(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 2 * time.Second, DialKeepAliveTime: 5 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second, Logger: zap.NewNop(),
	})
}

// Close kills every member and waits for them. Their data stays.
func (e *Etcd) Close() error {
	var errs []error
	for _, m := range e.members {
		errs = append(errs, m.Kill())
		if m.peerProxy != nil {
			errs = append(errs, m.peerProxy.Close())
		}
	}
	return errors.Join(append(errs, releasePorts(e.ports))...)
}

// Member is one server of a cluster. Its methods may not be called from two
// goroutines at once.
type Member struct {
	running
	name         string
	binary       string
	dir          string
	args         []string
	client, peer *port
	peerProxy    *Proxy // nil if others reach it without
}

func newMember(i int, config EtcdConfig, ports []*port, peers []*Proxy) *Member {
	m := &Member{
		name: memberName(i), binary: config.Binary, dir: filepath.Join(config.Dir, memberName(i)),
		client: ports[2*i], peer: ports[2*i+1], peerProxy: peers[i],
	}
	m.log = filepath.Join(m.dir, "log")
	m.args = append([]string{
		"--name", m.name, "--data-dir", m.Data(), "--listen-client-urls", "http://" + m.client.address(),
		"--advertise-client-urls", "http://" + m.client.address(), "--listen-peer-urls",
		"http://" + m.peer.address(), "--initial-advertise-peer-urls",
		"http://" + peerAddress(i, ports, peers), "--initial-cluster", initialCluster(ports, peers),
		"--initial-cluster-state", "new", "--log-level", "warn", "--quota-backend-bytes",
		strconv.FormatInt(config.QuotaBytes, 10),
	}, config.ExtraArgs...)
	return m
}

func memberName(i int) string { return "etcd-" + strconv.Itoa(i) }

func initialCluster(ports []*port, peers []*Proxy) string {
	var parts []string
	for i := range peers {
		parts = append(parts, memberName(i)+"=http://"+peerAddress(i, ports, peers))
	}
	return strings.Join(parts, ",")
}

// peerAddress is where the others reach member i.
func peerAddress(i int, ports []*port, peers []*Proxy) string {
	if peers[i] != nil {
		return peers[i].Address()
	}
	return ports[2*i+1].address()
}

// Data returns the folder with what the member has stored.
func (m *Member) Data() string { return filepath.Join(m.dir, "data") }

// prepare empties the member's folder: a new cluster never starts on old data.
func (m *Member) prepare() error {
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("prepare %s: %w", m.name, err)
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return fmt.Errorf("prepare %s: %w", m.name, err)
	}
	return nil
}

func (m *Member) start() error {
	p, err := startProcess(m.binary, m.Log(), m.args, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.process = p
	return nil
}

// awaitHealthy returns when the member answers /health, which includes a
// linearizable read, so it also has a leader.
func (m *Member) awaitHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	url := "http://" + m.client.address() + "/health"
	return m.process.await(ctx, m.name, func(ctx context.Context) error { return expectOK(ctx, url) })
}

// status asks this member alone, within half a second, what it knows.
func (m *Member) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	if !m.Running() {
		return nil, errNotRunning
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	client, err := newClient(m.client.address())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Status(ctx, m.client.address())
}

// Address returns the member's client address as host:port.
func (m *Member) Address() string { return m.client.address() }

// PeerProxy returns what stands between the member and its peers' connections to it, or
// nil. A member sends its messages over connections that its peers made: what goes to
// the client there is what the member sends, and what it receives goes by the proxies of
// the others.
func (m *Member) PeerProxy() *Proxy { return m.peerProxy }

// Restart starts the member again on its data and ports, after killing it if it
// runs, and returns when it is healthy.
func (m *Member) Restart(ctx context.Context) error {
	if err := m.Kill(); err != nil {
		return err
	}
	if err := m.start(); err != nil {
		return err
	}
	return m.awaitHealthy(ctx)
}
