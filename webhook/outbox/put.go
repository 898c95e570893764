package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// stamp says which of an owner's writes made a record.
type stamp struct {
	Fence uint64 `json:"fence,omitempty"` // of the owner's lock
	Write uint64 `json:"write,omitempty"` // one more with each write of the owner, from 1 on
}

// stamp returns that of the next write.
func (w *owner) stamp() stamp {
	w.stamped++
	return stamp{w.fence, w.stamped}
}

// stored is what an owner knows of one in the store.
type stored struct {
	version uint64 // 0 if there is none
	wrote   uint64 // by which of this owner's writes it has the version; 0 if by another one's
}

// put writes a record that is known as it was, and returns what is known of it then. Where an earlier
// write of this owner was executed although that was not known, it is written over that.
func (w *owner) put(ctx context.Context, k store.RecordKey, value []byte, by stamp, was stored) (stored, error) {
	now, err := w.Records.Put(ctx, store.RecordPut{RecordKey: k, Value: value, Version: was.version})
	if !errors.Is(err, lock.Changed) {
		return stored{now, by.Write}, err
	}
	is, again := w.Records.Get(ctx, k)
	switch {
	case again != nil:
		return was, again
	case bytes.Equal(is.Value, value):
		return stored{is.Version, by.Write}, nil
	case !w.wroteSince(was, is):
		return was, err
	}
	now, err = w.Records.Put(ctx, store.RecordPut{RecordKey: k, Value: value, Version: is.Version})
	return stored{now, by.Write}, err
}

// wroteSince reports whether a record is as this owner wrote it, after what is known of it. What it wrote
// before that comes again when the store is restored from a backup: then other records are older than it
// believes, too.
func (w *owner) wroteSince(was stored, is store.Record) bool {
	var by stamp
	return json.Unmarshal(is.Value, &by) == nil && by.Fence == w.fence && by.Write > was.wrote
}
