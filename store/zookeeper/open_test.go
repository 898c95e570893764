package zookeeper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestOpenSaysWhatItFound: a store that answered is not one that did not.
func TestOpenSaysWhatItFound(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	refusal := func(cfg zookeeper.Config) error {
		t.Helper()
		cfg.Servers = z.Endpoints()
		s, err := zookeeper.Open(t.Context(), cfg)
		if err == nil {
			t.Fatal(errors.Join(errors.New("it opens"), s.Close()))
		}
		return err
	}
	err := refusal(zookeeper.Config{Chroot: "/locks"})
	if want := "ZooKeeper has no node /locks: create it, or " +
		"correct the path in the store's address"; err.Error() != want {
		t.Errorf("Open: %v, want %s", err, want)
	}
	open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: 1000})
	if err := refusal(zookeeper.Config{FenceFloor: 999}); errors.Is(err, lock.StoreUnavailable) {
		t.Errorf("Open: %v", err)
	}
}

// TestOpenOverBrokenConnections: a connection that breaks meanwhile is not the end of it.
func TestOpenOverBrokenConnections(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	for _, after := range []int64{50, 150, 300} { // bytes, within the session's begin or later
		proxy := startProxy(t, z.Server(0))
		proxy.CutAfter(after)
		healed := make(chan struct{})
		go func() {
			defer close(healed)
			for proxy.Stats().Resets < 2 && t.Context().Err() == nil {
				<-time.After(time.Millisecond)
			}
			proxy.CutAfter(-1)
		}()
		open(t, zookeeper.Config{Servers: []string{proxy.Address()}})
		if n := proxy.Stats().Resets; n < 2 {
			t.Errorf("%d connections were cut after %d bytes, want two", n, after)
		}
		<-healed
	}
}

// TestLowFloorIsTold: a floor that was mistyped, below what the store has handed out, is taken and
// told of, once.
func TestLowFloorIsTold(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	take(t, s, draft("a"))
	log, said := journal(t)
	for _, floor := range []uint64{1, 1, 1 << 40} {
		open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: floor, Logger: log})
		if got := strings.Count(said.String(), "fence floor is below"); got != 1 ||
			!strings.Contains(said.String(), "floor=1 newest=") {
			t.Errorf("with a floor of %d it was told %d times, want once", floor, got)
		}
	}
}
