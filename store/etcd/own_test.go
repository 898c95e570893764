package etcd

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// TestOwnRecordIsTakenOnce: the feed gets the ends of a record of this replica's without what the
// entries were, and once.
func TestOwnRecordIsTakenOnce(t *testing.T) {
	var o ownWrites
	o.record([]byte("record"), []store.End{
		{ID: "a", Reason: lock.Released, Was: json.RawMessage(`{"position":7}`)},
	})
	ends, ok := o.takeRecord([]byte("record"))
	if !ok || len(ends) != 1 || ends[0].ID != "a" || ends[0].Reason != lock.Released ||
		ends[0].Was != nil {
		t.Errorf("took %+v, %v", ends, ok)
	}
	if again, ok := o.takeRecord([]byte("record")); ok {
		t.Errorf("took %+v again", again)
	}
}

// TestOwnRecordsAreBounded: without a feed that takes them, no more than so many ends are kept.
func TestOwnRecordsAreBounded(t *testing.T) {
	var o ownWrites
	for i := range 3 * maxOwnWrites {
		o.record(fmt.Append(nil, "record", i), make([]store.End, 10))
		if kept := 10 * len(o.records); kept > maxOwnWrites || kept != o.ends {
			t.Fatalf("%d ends are kept, %d are counted", kept, o.ends)
		}
	}
}
