package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/store/storetest"
	"github.com/fencepost/fencepost/test/rig"
)

var _ store.Store = (*etcd.Store)(nil)

// TestConformanceEmbedded runs the suite on a member inside the process. The
// clients of a case are two stores on it, as the process is the only client.
func TestConformanceEmbedded(t *testing.T) {
	conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "the embedded member", conn.Close) })
	var cases atomic.Int32
	storetest.Run(t, storetest.Harness{
		MinTTL:    etcd.MinTTL,
		NoCut:     "it is in the process and cannot be cut off",
		NoCompact: "it compacts itself and takes no orders",
		NoBackup:  "its data belongs to this process alone",
		Open: func(t *testing.T) storetest.Store {
			prefix := fmt.Sprintf("/case-%d/", cases.Add(1))
			reopen := func(t *testing.T) store.Store { return open(t, conn, prefix) }
			return storetest.Store{
				A: reopen(t), B: reopen(t), Reopen: reopen, Records: recordsOf,
				OpenFloor: withFloor(conn, prefix), SetForm: setForm(conn, prefix),
			}
		},
	})
}

func recordsOf(s store.Store) store.RecordStore { return s.(*etcd.Store).Records() }

// TestConformanceCluster runs the suite on three members that are processes. The
// second client of each case reaches them through proxies of its own.
func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	var cases atomic.Int32
	within := func(timeoutA, timeoutB time.Duration) func(*testing.T) storetest.Store {
		return func(t *testing.T) storetest.Store {
			prefix := fmt.Sprintf("/case-%d/", cases.Add(1))
			proxies := startProxies(t, cluster)
			dial := func(t *testing.T, endpoints []string, timeout time.Duration) store.Store {
				return openStore(t, connect(t, endpoints), etcd.Config{Prefix: prefix, Timeout: timeout})
			}
			reopen := func(t *testing.T) store.Store { return dial(t, cluster.Endpoints(), timeoutA) }
			return storetest.Store{
				A: reopen(t), B: dial(t, proxies.addresses(), timeoutB), Reopen: reopen, Records: recordsOf,
				OpenFloor: withFloor(connect(t, cluster.Endpoints()), prefix),
				SetForm:   setForm(connect(t, cluster.Endpoints()), prefix),
				CutB:      func(_ *testing.T, how storetest.Fault) func() { return proxies.cut(how) },
				Compact:   func(t *testing.T) { compact(t, cluster) },
			}
		}
	}
	storetest.Run(t, storetest.Harness{
		MinTTL: etcd.MinTTL, OpenAlone: openAlone, Open: within(longTimeout, longTimeout),
		OpenStrict: within(0, 0),
		OpenCut:    within(longTimeout, cutTimeout), CutLimit: cutTimeout + time.Second,
	})
}

// longTimeout is for calls whose duration no case checks.
const longTimeout = 20 * time.Second

// cutTimeout is for calls of a client that is cut off: twice the time of production.
const cutTimeout = 8 * time.Second

// TestVersionOfServers asks real servers, through the connection of a store.
func TestVersionOfServers(t *testing.T) {
	t.Parallel()
	conn := connect(t, startCluster(t, 1).Endpoints())
	if got, err := conn.Version(t.Context()); got != version.Version || err != nil {
		t.Errorf("the version is %q, %v", got, err)
	}
}

// withFloor opens stores with fence floors.
func withFloor(conn *etcd.Conn, prefix string) func(*testing.T, uint64) (store.Store, error) {
	return func(t *testing.T, floor uint64) (store.Store, error) {
		return tryOpen(t, conn, etcd.Config{Prefix: prefix, FenceFloor: floor, Timeout: longTimeout})
	}
}

// setForm records another form in the store at a prefix.
func setForm(conn *etcd.Conn, prefix string) func(*testing.T, int) {
	return func(t *testing.T, form int) {
		if err := conn.SetForm(t.Context(), prefix, form); err != nil {
			t.Fatal(err)
		}
	}
}

func tryOpen(t *testing.T, conn *etcd.Conn, cfg etcd.Config) (store.Store, error) {
	s, err := etcd.Open(t.Context(), conn, cfg)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { closing(t, "a store", s.Close) })
	return s, nil
}

// openAlone starts a member whose data can be put back: to etcd, the member that comes
// back is the same cluster.
func openAlone(t *testing.T) storetest.Store {
	cluster := startCluster(t, 1)
	const prefix = "/alone/"
	reopen := func(t *testing.T) store.Store {
		return openStore(
			t, connect(t, cluster.Endpoints()), etcd.Config{Prefix: prefix, Timeout: longTimeout},
		)
	}
	return storetest.Store{
		A: reopen(t), B: reopen(t), Reopen: reopen, Records: recordsOf,
		OpenFloor: withFloor(connect(t, cluster.Endpoints()), prefix),
		Backup: func(t *testing.T) func(*testing.T) {
			m := cluster.Member(0)
			copied := t.TempDir()
			replaced(t, m.Kill, m.Restart, m.Data(), copied)
			return func(t *testing.T) { replaced(t, m.Kill, m.Restart, copied, m.Data()) }
		},
	}
}

// replaced puts a copy of one folder in the place of another one while the server
// that uses them does not run.
func replaced(
	t *testing.T, kill func() error, restart func(context.Context) error, from, to string,
) {
	t.Helper()
	if err := kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func startCluster(t *testing.T, members int) *rig.Etcd {
	t.Helper()
	return startEtcd(t, rig.EtcdConfig{Members: members})
}

func startEtcd(t *testing.T, config rig.EtcdConfig) *rig.Etcd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	config.Dir = t.TempDir()
	binary, err := rig.BuildEtcd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	config.Binary = binary
	cluster, err := rig.StartEtcd(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "the cluster", cluster.Close) })
	return cluster
}

func open(t *testing.T, conn *etcd.Conn, prefix string) *etcd.Store {
	t.Helper()
	return openStore(t, conn, etcd.Config{Prefix: prefix})
}

func dial(t *testing.T, endpoints []string, prefix string) *etcd.Store {
	t.Helper()
	return open(t, connect(t, endpoints), prefix)
}

func connect(t *testing.T, endpoints []string) *etcd.Conn {
	t.Helper()
	conn, err := etcd.Dial(etcd.RemoteConfig{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "a connection", conn.Close) })
	return conn
}

// closing checks that what a test opened ends without an error, and soon.
func closing(t *testing.T, what string, end func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("close %s: %v", what, err)
		}
	case <-time.After(time.Minute):
		t.Errorf("close %s: it has not ended after a minute", what)
	}
}

func compact(t *testing.T, cluster *rig.Etcd) {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	newest, err := client.Get(t.Context(), "nothing")
	if err != nil {
		t.Fatal(err)
	}
	// Another case may have been faster.
	if _, err := client.Compact(t.Context(), newest.Header.Revision); err != nil &&
		!errors.Is(err, rpctypes.ErrCompacted) {
		t.Fatal(err)
	}
}

// proxies stand before the members of a cluster.
type proxies []*rig.Proxy

func startProxies(t *testing.T, cluster *rig.Etcd) proxies {
	t.Helper()
	var all proxies
	for _, endpoint := range cluster.Endpoints() {
		p, err := rig.StartProxy(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closing(t, "a proxy", p.Close) })
		all = append(all, p)
	}
	return all
}

func (p proxies) addresses() []string {
	var all []string
	for _, proxy := range p {
		all = append(all, proxy.Address())
	}
	return all
}

func (p proxies) cut(how storetest.Fault) (restore func()) {
	for _, proxy := range p {
		switch how {
		case storetest.Silent:
			proxy.Blackhole(rig.Both)
		case storetest.Deaf:
			proxy.Blackhole(rig.ToClient)
		case storetest.Broken:
			proxy.Blackhole(rig.Both)
			proxy.CutAll()
		}
	}
	return func() {
		for _, proxy := range p {
			proxy.Blackhole(0)
		}
	}
}
