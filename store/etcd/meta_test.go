package etcd_test

import (
	"bytes"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencepost/fencepost/store/etcd"
)

// TestMetaByHand deletes and damages what the store knows of itself: a replica that
// runs puts it back.
func TestMetaByHand(t *testing.T) {
	t.Parallel()
	const prefix = "/by-hand/"
	cluster := startCluster(t, 1)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	records := func() string {
		t.Helper()
		resp, err := client.Get(t.Context(), prefix+"meta/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, kv := range resp.Kvs {
			all.WriteString(string(kv.Key) + "=" + string(kv.Value) + "\n")
		}
		return all.String()
	}
	conn := connect(t, cluster.Endpoints())
	s := openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: 1_000_000})
	go s.Watch(t.Context(), silent{})
	before, held := records(), mustEnqueue(t, s, newEntry("a", "held"))
	for name, damage := range map[string]func() error{
		"all deleted":       func() error { _, err := client.Delete(t.Context(), prefix+"meta/", clientv3.WithPrefix()); return err },
		"the floor deleted": func() error { _, err := client.Delete(t.Context(), prefix+"meta/floor"); return err },
		"the floor damaged": func() error { _, err := client.Put(t.Context(), prefix+"meta/floor", "x"); return err },
		"the key emptied":   func() error { _, err := client.Put(t.Context(), prefix+"meta/tokenkey", ""); return err },
		"a form made up":    func() error { _, err := client.Put(t.Context(), prefix+"meta/form", "two"); return err },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": it is put back", func() bool { return records() == before })
	}
	next := mustEnqueue(t, s, newEntry("a", "next"))
	if next.Number <= held.Number {
		t.Errorf("fence %d after %d", next.Number, held.Number)
	}
	if late := dial(t, cluster.Endpoints(), prefix); !bytes.Equal(late.TokenKey(), s.TokenKey()) {
		t.Error("two replicas have different token keys")
	}
}

// TestMetaGone deletes it while no replica runs: nobody knows which floor it had, and
// so whether fences would be handed out a second time.
func TestMetaGone(t *testing.T) {
	const prefix = "/gone/"
	cluster := startCluster(t, 1)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, "the client", client.Close)
	conn := connect(t, cluster.Endpoints())
	before := mustEnqueue(t, openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: 1_000_000}), newEntry("a", "held"))
	for _, key := range []string{"floor", ""} {
		if _, err := client.Delete(t.Context(), prefix+"meta/"+key, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		if _, err := etcd.Open(t.Context(), conn, etcd.Config{Prefix: prefix}); err == nil || !strings.Contains(err.Error(), "--fence-floor") {
			t.Errorf("Open without meta/%s = %v, want an error that asks for a floor", key, err)
		}
		after := mustEnqueue(t, openStore(t, conn, etcd.Config{Prefix: prefix, FenceFloor: before.Number}), newEntry("b", "after"+key))
		if after.Number <= before.Number {
			t.Errorf("fence %d after %d", after.Number, before.Number)
		}
		before = after
	}
}
