package outbox

import (
	"testing"

	"github.com/fencepost/fencepost/store"
)

// TestNotOverwritten: what an owner did not write since it knows of a record is another one's, also if it is
// as this owner wrote it once: the store is restored from a backup.
func TestNotOverwritten(t *testing.T) {
	m := newMissing(t)
	d := m.misses(10, 20)
	m.takes()
	was, _ := m.kept(d)
	m.misses(20, 30)
	m.takes()
	if _, err := m.Records.Put(t.Context(), store.RecordPut{RecordKey: was.RecordKey, Value: was.Value, Version: d.version}); err != nil {
		t.Fatal(err)
	}
	lost := false
	m.lose = func() { lost = true }
	m.misses(30, 40)
	m.takes()
	if is, _ := m.kept(d); !lost || string(is.Value) != string(was.Value) {
		t.Errorf("the shard is lost: %v, and kept is %s", lost, is.Value)
	}
}
