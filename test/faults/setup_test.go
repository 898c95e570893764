package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	tenant  = "acme"
	secret  = "faults: thirty-two bytes or more, and never used elsewhere"
	clients = 16
)

// toLoopback lets webhooks go to receivers of the tests.
var toLoopback = []string{
	"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*",
}

// full says whether to run with the published counts; otherwise the tests are
// short enough for every change.
func full() bool { return os.Getenv("FAULTS") == "full" }

func count(short, whole int) int {
	if full() {
		return whole
	}
	return short
}

// binaries builds the server, and builds or fetches the store, once for all tests
// of a run.
var binaries = sync.OnceValues(func() (b struct{ store, api string }, err error) {
	dir := os.Getenv(binariesVariable)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	switch kind := os.Getenv("STORE"); kind {
	case "", "etcd":
		b.store, err = rig.BuildEtcd(ctx)
	case "zookeeper":
		b.store, err = fetchZooKeeper(ctx)
	default:
		err = fmt.Errorf("STORE=%s: there are etcd and zookeeper", kind)
	}
	if err != nil {
		return b, err
	}
	if b.api = os.Getenv("FAULTS_API"); b.api != "" {
		return b, nil // test this binary instead
	}
	b.api, err = rig.BuildAPI(ctx, dir, rig.Race(full()))
	return b, err
})

func onZooKeeper() bool { return os.Getenv("STORE") == "zookeeper" }

func fetchZooKeeper(ctx context.Context) (string, error) {
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		return "", err
	}
	return rig.FetchZooKeeper(ctx, cache)
}

// startCluster starts three members of the store that the run is about.
func startCluster(ctx context.Context, dir, store string) (drive.Cluster, error) {
	if onZooKeeper() {
		z, err := rig.StartZooKeeper(ctx, rig.ZooKeeperConfig{Servers: 3, Dir: dir, Java: store})
		return drive.ZooKeeper{ZooKeeper: z}, err
	}
	e, err := rig.StartEtcd(ctx, rig.EtcdConfig{Members: 3, Dir: dir, Binary: store})
	return drive.Etcd{Etcd: e}, err
}

// binariesVariable names the folder for the binaries, which TestMain removes.
const binariesVariable = "FAULTS_BINARIES"

func TestMain(m *testing.M) { os.Exit(run(m)) }

// standsAtOnce is how many clusters the short runs have at a time: most of what
// they do is wait for leases and elections.
const standsAtOnce = 3

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fencepost-faults-")
	if err == nil {
		err = os.Setenv(binariesVariable, dir)
	}
	if err == nil {
		err = rig.RunAtOnce(standsAtOnce)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// stand is what every test needs: three members, two replicas, clients, and two observers: of the
// answers to the clients, and of the store's history.
type stand struct {
	t        *testing.T
	ctx      context.Context // ends with the test's own limit
	dir      string
	cluster  drive.Cluster
	replicas []*rig.Replica
	history  *history.Recorder
	store    *drive.Store
	odd      *drive.Oddities
	clients  []*drive.Client
}

func newStand(t *testing.T, limit time.Duration, args ...string) *stand {
	t.Helper()
	s := newCluster(t, limit)
	s.serve(args...)
	return s
}

// serve starts two replicas, and has clients and observers.
func (s *stand) serve(args ...string) {
	s.t.Helper()
	for range 2 {
		s.replica(s.cluster.Store(), args...)
	}
	s.observe()
	s.connect()
}

// newCluster is a stand that lacks everything but the store.
func newCluster(t *testing.T, limit time.Duration) *stand {
	t.Helper()
	return newClusterOf(t, limit, startCluster)
}

// newClusterOf is newCluster with a store that is started so, in a folder and with the server of
// the run's store.
func newClusterOf(
	t *testing.T,
	limit time.Duration,
	start func(ctx context.Context, dir, store string) (drive.Cluster, error),
) *stand {
	t.Helper()
	if !full() { // the full runs measure time
		t.Parallel()
	}
	built, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	s := &stand{
		t: t, ctx: ctx, dir: t.TempDir(), history: history.NewRecorder(), odd: &drive.Oddities{},
	}
	if s.cluster, err = start(ctx, s.dir, built.store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.must(s.cluster.Close()) })
	return s
}

// replica starts one more server on a store: the cluster, or proxies before it.
func (s *stand) replica(store string, args ...string) {
	s.t.Helper()
	built, err := binaries()
	if err != nil {
		s.t.Fatal(err)
	}
	s.replicaAs(built.api, store, args...)
}

// replicaAs is replica with another binary of the server.
func (s *stand) replicaAs(binary, store string, args ...string) {
	s.t.Helper()
	r, err := rig.StartReplica(s.ctx, rig.ReplicaConfig{
		Binary: binary, Store: store, Secret: secret, Args: args,
		DataDir: filepath.Join(s.dir, fmt.Sprint("replica-", len(s.replicas))),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.replicas = append(s.replicas, r)
	s.t.Cleanup(func() { s.must(r.Close()) })
}

// replicaBehindProxies starts one more server, and a proxy before each member for it alone,
// which is made ready before the server connects.
func (s *stand) replicaBehindProxies(ready func(*rig.Proxy)) (proxies []*rig.Proxy) {
	s.t.Helper()
	kind, members, _ := strings.Cut(s.cluster.Store(), "://")
	var addresses []string
	for member := range strings.SplitSeq(members, ",") {
		p, err := rig.StartProxy(member)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { s.must(p.Close()) })
		ready(p)
		proxies, addresses = append(proxies, p), append(addresses, p.Address())
	}
	s.replica(kind + "://" + strings.Join(addresses, ","))
	return proxies
}

func (s *stand) observe() {
	s.t.Helper()
	var err error
	if s.store, err = s.cluster.Observe(s.ctx, tenant, s.history.Now); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.must(s.store.Close()) })
}

func (s *stand) connect() {
	s.t.Helper()
	bearer, err := rig.SignToken(secret, tenant, "locks:read locks:write", "worker")
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range clients {
		c := drive.NewClient(i, s.urls(), bearer, s.history, s.odd)
		s.clients = append(s.clients, c)
		s.t.Cleanup(c.Close)
	}
}

// more adds clients until there are n.
func (s *stand) more(n int) {
	for i := len(s.clients); i < n; i++ {
		c := s.clients[0].With(s.urls()...)
		c.Number = i
		s.clients = append(s.clients, c)
		s.t.Cleanup(c.Close)
	}
}

func (s *stand) urls() (urls []string) {
	for _, r := range s.replicas {
		urls = append(urls, r.URL())
	}
	return urls
}

// must fails the test, but lets it go on.
func (s *stand) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

// each runs work for every client at once and waits for all.
func (s *stand) each(work func(c *drive.Client)) {
	var all sync.WaitGroup
	for _, c := range s.clients {
		all.Go(func() { work(c) })
	}
	all.Wait()
}

// seenWithin bounds for how long a test goes on until it has seen what it is about.
const seenWithin = 3 * time.Minute

// until returns a context for load: it ends after length, but not before the test
// has seen what it is about. On a slow machine that takes longer; after seenWithin
// the test may say that it has not.
func (s *stand) until(length time.Duration, seen func() bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithTimeout(s.ctx, length+seenWithin)
	var watch sync.WaitGroup
	watch.Go(func() {
		defer cancel()
		for pause(ctx, length); ctx.Err() == nil && !seen(); pause(ctx, 20*time.Millisecond) {
		}
	})
	return ctx, func() {
		cancel()
		watch.Wait()
	}
}

// within is a time within which something is promised to happen. The full runs
// hold it as it is; the short ones share their machine with whatever else runs, and
// find what does not happen at all.
func within(promised time.Duration) time.Duration {
	if full() {
		return promised
	}
	return 4 * promised
}

// proxied returns a client that reaches replica 0 through a proxy of its own
// (index 0), and both replicas directly (indexes 1 and 2).
func (s *stand) proxied(c *drive.Client) (*drive.Client, *rig.Proxy) {
	s.t.Helper()
	p, err := rig.StartProxy(s.replicas[0].Address())
	if err != nil {
		s.t.Fatal(err)
	}
	through := c.With(append([]string{p.URL()}, s.urls()...)...)
	s.t.Cleanup(func() {
		through.Close()
		s.must(p.Close())
	})
	return through, p
}

// judge checks everything that was observed. It waits until the store is empty: whatever no
// client released must expire.
func (s *stand) judge() {
	s.t.Helper()
	ops := s.history.Ops()
	s.t.Logf("%v", history.Summarize(ops))
	dir := s.t.TempDir()
	if keep := os.Getenv("FAULTS_DIR"); keep != "" {
		dir = keep
	}
	s.must(history.Check(ops, history.CheckOptions{Timeout: 5 * time.Minute, Dir: dir}))
	truth, err := s.settled()
	if err != nil {
		s.t.Fatal(err)
	}
	s.must(truth.Check(ops))
	for _, odd := range s.odd.Found() {
		s.t.Error(odd)
	}
	s.readLogs()
}

// settled waits until the store is empty and stays so: a request whose client
// gave up may still be written a few seconds later.
func (s *stand) settled() (*history.Truth, error) {
	for attempt := 1; ; attempt++ {
		s.must(s.store.AwaitEmpty(s.ctx))
		truth, err := s.store.Truth(s.ctx)
		if err != nil {
			return truth, err
		}
		if err := truth.Orphans(); err == nil || attempt == 3 {
			s.must(err)
			return truth, nil
		}
	}
}

// readLogs fails for what no server may ever write.
func (s *stand) readLogs() {
	s.t.Helper()
	for i, r := range s.replicas {
		log, err := os.ReadFile(r.Log())
		if err != nil {
			s.t.Fatal(err)
		}
		if keep := os.Getenv("FAULTS_DIR"); keep != "" && s.t.Failed() {
			s.must(os.WriteFile(
				filepath.Join(keep, fmt.Sprint(filepath.Base(s.t.Name()), ".replica-", i, ".log")), log, 0o600,
			))
		}
		for _, bad := range []string{"panic", "DATA RACE", "fatal error:"} {
			if at := bytes.Index(log, []byte(bad)); at >= 0 {
				s.t.Errorf("log of replica %d: %s", i, log[at:min(len(log), at+3000)])
			}
		}
	}
}
