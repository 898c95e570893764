package zookeeper_test

import (
	"errors"
	"testing"

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
	if want := "ZooKeeper has no node /locks: create it, or correct the path in the store's address"; err.Error() != want {
		t.Errorf("Open: %v, want %s", err, want)
	}
	open(t, zookeeper.Config{Servers: z.Endpoints(), FenceFloor: 1000})
	if err := refusal(zookeeper.Config{FenceFloor: 999}); errors.Is(err, lock.StoreUnavailable) {
		t.Errorf("Open: %v", err)
	}
}
