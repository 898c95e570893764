package etcd

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestFullStoreLetsGo: a full store lets go of what it has: operators revoke,
// and records are deleted, with what is on record of that.
func TestFullStoreLetsGo(t *testing.T) {
	t.Parallel()
	s, _ := testStore(t, EmbeddedConfig{}, func(*Conn) {})
	e := s.mustEnqueue(t, testEntry("a", "held"))
	put := func(id string, frees bool) (uint64, error) {
		return s.records.Put(t.Context(), store.RecordPut{
			RecordKey: store.RecordKey{Kind: "note", Tenant: "acme", ID: id}, Value: []byte("1"),
			Frees: frees,
		})
	}
	version, err := put("there", false)
	if err != nil {
		t.Fatal(err)
	}
	s.conn.admit = func(int) bool { return false }
	var full *lock.Error
	if _, err := put("more", false); !errors.As(err, &full) || full.Code != lock.StoreUnavailable {
		t.Fatalf("Put = %v, want the store full", err)
	}
	if _, err := put("deleting", true); err != nil {
		t.Errorf("what is on record of a deletion: %v", err)
	}
	if err := s.records.Delete(
		t.Context(), store.RecordKey{Kind: "note", Tenant: "acme", ID: "there"}, version,
	); err != nil {
		t.Errorf("Delete = %v", err)
	}
	note := store.RecordPut{
		RecordKey: store.RecordKey{Kind: "note", Tenant: "acme", ID: "revoking"}, Value: []byte("1"),
	}
	if err := s.RemoveAndPut(t.Context(), e, lock.Revoked, nil, note); err != nil {
		t.Errorf("RemoveAndPut = %v", err)
	}
	if left := s.mustFind(t, e); left != nil {
		t.Errorf("it is there: %+v", left)
	}
}
