package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/storetest"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

var _ store.Store = (*zookeeper.Store)(nil)

// TestConformance runs the suite on a server that is a process. The second
// client of each case reaches it through a proxy of its own.
func TestConformance(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	var cases atomic.Int32
	within := func(timeoutA, timeoutB time.Duration) func(*testing.T) storetest.Store {
		return func(t *testing.T) storetest.Store {
			prefix := fmt.Sprintf("/case-%d", cases.Add(1))
			proxy := startProxy(t, z.Server(0))
			reopen := func(t *testing.T) store.Store {
				return open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, Timeout: timeoutA})
			}
			a := open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, Timeout: timeoutA})
			return storetest.Store{
				A: a,
				B: reader{
					open(
						t, zookeeper.Config{Servers: []string{proxy.Address()}, Prefix: prefix, Timeout: timeoutB},
					),
				},
				Reopen:    reopen,
				Records:   recordsOf,
				OpenFloor: withFloor(z, prefix),
				SetForm:   setForm(a),
				CutB:      func(_ *testing.T, how storetest.Fault) func() { return cut(proxy, how) },
			}
		}
	}
	storetest.Run(t, storetest.Harness{
		MinTTL: zookeeper.MinTTL, NoCompact: "ZooKeeper keeps no history that it could forget",
		NoEarlier: "its log is for replicas that run", OpenAlone: openAlone,
		Open: within(longTimeout, longTimeout), OpenStrict: within(0, 0),
		OpenCut: within(longTimeout, cutTimeout), CutLimit: cutTimeout + time.Second,
	})
}

// longTimeout is for calls that only need to work in a case.
const longTimeout = 20 * time.Second

// cutTimeout is for calls of a client that is cut off: twice the time of production.
const cutTimeout = 8 * time.Second

// withFloor opens stores with fence floors.
func withFloor(z *rig.ZooKeeper, prefix string) func(*testing.T, uint64) (store.Store, error) {
	return func(t *testing.T, floor uint64) (store.Store, error) {
		return tryOpen(t, zookeeper.Config{
			Servers: z.Endpoints(), Prefix: prefix, FenceFloor: floor, Timeout: longTimeout,
		})
	}
}

// setForm records another form, through a client that was open before.
func setForm(s *zookeeper.Store) func(*testing.T, int) {
	return func(t *testing.T, form int) {
		if err := s.SetForm(t.Context(), form); err != nil {
			t.Fatal(err)
		}
	}
}

func tryOpen(t *testing.T, cfg zookeeper.Config) (store.Store, error) {
	s, err := zookeeper.Open(t.Context(), cfg)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { closing(t, "a store", s.Close) })
	return s, nil
}

// openAlone starts a server whose data can be put back.
func openAlone(t *testing.T) storetest.Store {
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	const prefix = "/alone"
	reopen := func(t *testing.T) store.Store {
		return open(t, zookeeper.Config{Servers: z.Endpoints(), Prefix: prefix, Timeout: longTimeout})
	}
	return storetest.Store{
		A: reopen(t), B: reopen(t), Reopen: reopen, Records: recordsOf, OpenFloor: withFloor(z, prefix),
		Backup: func(t *testing.T) func(*testing.T) {
			copied := t.TempDir()
			replaced(t, z.Server(0), z.Server(0).Data(), copied)
			return func(t *testing.T) { replaced(t, z.Server(0), copied, z.Server(0).Data()) }
		},
	}
}

// replaced puts a copy of one folder in the place of another one while the server
// does not run.
func replaced(t *testing.T, server *rig.ZooKeeperServer, from, to string) {
	t.Helper()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// reader is a store whose feed is late whenever a queue is asked for.
type reader struct{ *zookeeper.Store }

func (r reader) Queue(ctx context.Context, ref lock.Ref) ([]*lock.Entry, uint64, error) {
	return r.ReadQueue(ctx, ref)
}

func recordsOf(s store.Store) store.RecordStore {
	return s.(interface{ Records() store.RecordStore }).Records()
}

func startZooKeeper(t *testing.T, config rig.ZooKeeperConfig) *rig.ZooKeeper {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cache, err := rig.ZooKeeperCache()
	if err != nil {
		t.Fatal(err)
	}
	if config.Java, err = rig.FetchZooKeeper(ctx, cache); err != nil {
		t.Fatal(err)
	}
	config.Dir = t.TempDir()
	z, err := rig.StartZooKeeper(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "ZooKeeper", z.Close) })
	return z
}

func open(t *testing.T, cfg zookeeper.Config) *zookeeper.Store {
	t.Helper()
	var s *zookeeper.Store
	within(
		t,
		time.Minute,
		"a store is open",
		func() bool { // a server that has just started beside others may take its time
			var err error
			if s, err = zookeeper.Open(t.Context(), cfg); err != nil &&
				!errors.Is(err, lock.StoreUnavailable) {
				t.Fatal(err)
			}
			return err == nil
		},
	)
	t.Cleanup(func() { closing(t, "a store", s.Close) })
	return s
}

func startProxy(t *testing.T, server *rig.ZooKeeperServer) *rig.Proxy {
	t.Helper()
	p, err := rig.StartProxy(server.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, "a proxy", p.Close) })
	return p
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

func cut(proxy *rig.Proxy, how storetest.Fault) (restore func()) {
	switch how {
	case storetest.Silent:
		proxy.Blackhole(rig.Both)
	case storetest.Deaf:
		proxy.Blackhole(rig.ToClient)
	case storetest.Broken:
		proxy.Blackhole(rig.Both)
		proxy.CutAll()
	}
	return func() { proxy.Blackhole(0) }
}
