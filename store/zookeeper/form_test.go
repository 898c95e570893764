package zookeeper_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/zookeeper"
	"github.com/fencepost/fencepost/test/rig"
)

// TestFormOfAnEntryAlone has an entry in a form of the future, of which meta says
// nothing, as after a restore. It is not taken for a damaged one, which would be removed
// after a minute.
func TestFormOfAnEntryAlone(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	e := enqueue(t, s, draft("a"))
	overwriteEntries(t, client, `{"form":99,"mode":"of the future"}`)
	late := open(t, zookeeper.Config{Servers: z.Endpoints()})
	entries, _, err := late.Queue(t.Context(), lock.Ref{Tenant: "acme", Name: "a"})
	if err != nil || len(entries) != 1 || entries[0].ID != e.ID || entries[0].Number != e.Number || entries[0].TTL != lock.MaxTTL {
		t.Fatalf("the queue is %v, %v", entries, err)
	}
	if !errors.Is(late.Refusal(), store.ErrNewerForm) {
		t.Errorf("it grants: %v", late.Refusal())
	}
	if _, _, err := late.Enqueue(t.Context(), draft("b")); !errors.Is(err, store.ErrNewerForm) {
		t.Errorf("Enqueue = %v", err)
	}
	if err := s.Refusal(); err != nil {
		t.Errorf("one that has not read it refuses: %v", err)
	}
}

// TestFormByHand: a form that was lowered by hand is raised again, as a server that needs it raises it.
func TestFormByHand(t *testing.T) {
	t.Parallel()
	z := startZooKeeper(t, rig.ZooKeeperConfig{})
	client := hand(t, z)
	s := open(t, zookeeper.Config{Servers: z.Endpoints()})
	kept := draft("a")
	kept.Async = true
	enqueue(t, s, kept)
	const meta = "/fencepost/v1/meta"
	data, _, err := client.Get(meta)
	if err != nil || !bytes.Contains(data, []byte(`"form":2`)) {
		t.Fatalf("meta is %s, %v", data, err)
	}
	if _, err := client.Set(meta, bytes.Replace(data, []byte(`"form":2`), []byte(`"form":1`), 1), -1); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "it is raised again", func() bool {
		enqueue(t, s, draft("b")) // compares meta with what it knows
		now, _, err := client.Get(meta)
		return err == nil && bytes.Equal(now, data)
	})
}
