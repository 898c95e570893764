package row

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
	"github.com/fencepost/fencepost/test/rig"
)

// bearers is how many clients with a token of their own the load pretends to be.
const bearers = 128

const tenant = "bench"

// cluster is running etcd with one client.
type cluster struct {
	*rig.Etcd
	client *clientv3.Client
}

func (b *bench) startEtcd(
	ctx context.Context,
	name string,
	members int,
	cs *closers,
) (*cluster, error) {
	binary, err := b.etcdBinary(ctx)
	if err != nil {
		return nil, err
	}
	etcd, err := rig.StartEtcd(
		ctx, rig.EtcdConfig{Members: members, Dir: filepath.Join(b.dir, name), Binary: binary},
	)
	if err != nil {
		return nil, err
	}
	cs.add(etcd.Close)
	client, err := etcd.Client()
	if err != nil {
		return nil, err
	}
	cs.add(client.Close)
	return &cluster{etcd, client}, nil
}

func (c *cluster) pids() []int {
	var pids []int
	for i := range c.Size() {
		pids = append(pids, c.Member(i).PID())
	}
	return pids
}

func (c *cluster) urls() ([]*url.URL, error) {
	var urls []*url.URL
	for _, e := range c.Endpoints() {
		u, err := url.Parse("http://" + e)
		if err != nil {
			return nil, err
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// v3lock returns workers that lock over the gateways of a cluster's members.
func (c *cluster) v3lock(n int, cs *closers) ([]load.Worker, error) {
	urls, err := c.urls()
	if err != nil {
		return nil, err
	}
	return side.NewV3LockWorkers(connections(cs), urls, n), nil
}

// mutex returns workers with concurrency.Mutex over so many sessions.
func (c *cluster) mutex(n, sessions int, cs *closers) ([]load.Worker, error) {
	s, err := side.NewSessions(c.client, sessions)
	if err != nil {
		return nil, err
	}
	cs.add(s.Close)
	return s.Workers(n), nil
}

func connections(cs *closers) *side.Connections {
	c := side.NewConnections()
	cs.add(c.Close)
	return c
}

// replica is a running API server.
type replica struct {
	*rig.Replica
	number int           // which it is of the row's
	debug  string        // address of its profiler; empty without one
	took   time.Duration // until it was ready
}

// toLoopback lets webhooks go to receivers of the benchmark.
var toLoopback = []string{
	"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*",
}

// startReplica starts Fencepost as its users run it: it checks tokens, and the access log
// goes to a file. An empty store is the embedded one.
func (b *bench) startReplica(
	ctx context.Context,
	store string,
	cs *closers,
	args ...string,
) (*replica, error) {
	binary, err := b.apiBinary(ctx)
	if err != nil {
		return nil, err
	}
	b.replicas++
	r := &replica{number: b.replicas}
	config := rig.ReplicaConfig{
		Binary: binary, Store: store,
		DataDir: filepath.Join(b.dir, fmt.Sprintf("fencepost-%d", r.number)),
		Secret:  "the secret of the benchmark, which is no secret",
		Secure:  slices.Contains(args, certFlag), Args: args,
	}
	if b.Profiles != "" {
		if r.debug, err = debugAddress(); err != nil {
			return nil, err
		}
		config.Args = append(config.Args, "--debug-listen", r.debug)
	}
	start := time.Now()
	if r.Replica, err = rig.StartReplica(ctx, config); err != nil {
		return nil, err
	}
	r.took = time.Since(start)
	cs.add(r.Close)
	return r, checkConditions(ctx, r)
}

// clients returns how clients reach a replica; the caller may change it.
func clients(r *replica, cs *closers) (side.Fencepost, error) { return clientsOf(r, tenant, cs) }

func clientsOf(r *replica, tenant string, cs *closers) (side.Fencepost, error) {
	base, err := url.Parse(r.URL())
	if err != nil {
		return side.Fencepost{}, err
	}
	f := side.Fencepost{Connections: connections(cs), Base: base}
	if base.Scheme == "https" {
		f.Connections.TLS = toOurs()
	}
	for i := range bearers {
		token, err := r.Token(tenant, "locks:read locks:write", fmt.Sprintf("worker-%d", i))
		if err != nil {
			return side.Fencepost{}, err
		}
		f.Bearers = append(f.Bearers, token)
	}
	return f, nil
}
