package etcd_test

import (
	"encoding/json"
	"testing"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/etcd"
)

// TestFloorGone deletes the floor in the store's own record while no replica runs. It is then
// unknown, and fences would be issued a second time.
func TestFloorGone(t *testing.T) {
	t.Parallel()
	const prefix = "/floor-gone/"
	cluster := startCluster(t, 1)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	conn := connect(t, cluster.Endpoints())
	s, err := etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix, FenceFloor: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	before := mustEnqueue(t, s, newEntry("a", "held"))
	closing(t, "the store", s.Close)
	spoil(t, client, prefix, func(own []byte) []byte {
		var all map[string]any
		if err := json.Unmarshal(own, &all); err != nil {
			t.Fatal(err)
		}
		delete(all, "floor")
		return store.Encode(all)
	})
	again, err := etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix})
	if err == nil {
		defer closing(t, "the store", again.Close)
		t.Errorf("it grants %d after %d", mustEnqueue(t, again, newEntry("b", "x")).Number, before.Number)
		return
	}
	wantRemedy(t, "Open", err)
}
