package zookeeper

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// mark is the content of an idempotency key's node. The node is made with the entry and outlives
// it. So the store itself rejects a join with a used key, however late and from whichever
// replica.
type mark struct {
	Lock   string      `json:"lock"`             // the entry's home
	Reason lock.Reason `json:"reason,omitempty"` // why it ended, if it did
	At     int64       `json:"at_ms,omitempty"`
}

// noMark is the version of a missing node.
const noMark = -1

// claim is the operation by which an entry takes its key. It makes a new node, or replaces that
// version of a withdrawn entry's node.
func (j *joiner) claim(e *lock.Entry, version int32) any {
	path, data := j.root.mark(e.Tenant, e.ID), store.Encode(mark{Lock: e.Home()})
	if version == noMark {
		return j.create(path, data)
	}
	return &zk.SetDataRequest{Path: path, Data: data, Version: version}
}

// findByKey finds out why a join was rejected. Either the entry exists, or its key is used up,
// which is an error with the reason. If neither holds, a join may replace the version of the
// key's mark. Before it, a write of this replica must be answered on the same connection, or on
// one opened earlier: then findByKey sees what that write saw, or newer.
func (j *joiner) findByKey(
	ctx context.Context, e *lock.Entry,
) (found *lock.Entry, version int32, err error) {
	k, version := keyOf(e), int32(noMark)
	if e.Resumable() {
		n, err := onLink(ctx, j.calls, get(j.root.mark(e.Tenant, e.ID)))
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, noMark, err
		}
		var m mark
		if err == nil {
			version = n.stat.Version
			if bad := json.Unmarshal(n.data, &m); bad != nil {
				j.report(j.root.mark(e.Tenant, e.ID), "what is known of a key cannot be read", "error", bad)
			}
		}
		switch {
		case m.Reason == lock.Withdrawn:
			return nil, version, nil
		case m.Reason != "":
			ended := store.Lost("the entry of this key has ended")
			ended.Reason = m.Reason
			return nil, version, ended
		case m.Lock != "":
			k.lock = m.Lock
		}
	}
	found, err = j.find(ctx, j.calls, k)
	return found, version, err
}

// place is a position in a log.
type place struct{ epoch, n int32 }

// end is one recorded removal, and whether the entry had a key, whose mark is deleted with it.
type end struct {
	store.End
	Keyed bool `json:"keyed,omitempty"`
}
