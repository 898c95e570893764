package etcd

import (
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/fencepost/fencepost/test/bubble"
)

// History is not compacted while a list is read, but no list may hold it for ever.
func TestHolds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var h holds
		if h.any() {
			t.Error("history is held though nobody reads a list")
		}
		first, second := h.begin(), h.begin()
		first()
		first()
		if !h.any() {
			t.Error("the end of one list ends what another one holds")
		}
		second()
		if h.any() {
			t.Error("history is held though both lists are read")
		}
		h.begin()
		<-time.After(maxHold - time.Nanosecond)
		if !h.any() {
			t.Error("a long list is given up too soon")
		}
		<-time.After(time.Nanosecond)
		if h.any() {
			t.Error("a list that does not end holds history for ever")
		}
	})
}

// TestCompactionWaitsForLists looks at a member that is compacted.
func TestCompactionWaitsForLists(t *testing.T) {
	conn, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := Open(t.Context(), conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, ok := conn.renewer.(*member)
	if !ok {
		t.Fatal("the embedded store renews elsewhere")
	}
	for range keptRevisions + 10 {
		if _, err := m.kv.Put(t.Context(), &pb.PutRequest{Key: []byte("something")}); err != nil {
			t.Fatal(err)
		}
	}
	newest := m.server.KV().Rev()
	release := conn.holdHistory()
	if err := m.forget(newest); err != nil || m.server.KV().FirstRev() > 1 {
		t.Errorf("while a list is read: %v, compacted up to %d; want nothing compacted", err, m.server.KV().FirstRev())
	}
	release()
	if err := m.forget(newest); err != nil || m.server.KV().FirstRev() != newest-keptRevisions {
		t.Errorf("then: %v, compacted up to %d, want %d before %d", err, m.server.KV().FirstRev(), keptRevisions, newest)
	}
}
