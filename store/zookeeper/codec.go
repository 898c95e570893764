package zookeeper

import (
	"encoding/json"
	"errors"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// valueOf returns the value of an entry's primary node.
func valueOf(e *lock.Entry, handle int64) *store.Value {
	v := store.ValueOf(e)
	v.Handle = handle
	return v
}

// record is the changes of one transaction.
type record struct {
	Changes []change `json:"changes,omitempty"`

	// Meta means that the store's own record has changed.
	Meta bool `json:"meta,omitempty"`
}

// change is one entry that joined or was narrowed, with its value, or one that left.
type change struct {
	Tenant string       `json:"tenant"`
	Lock   string       `json:"lock"` // the entry's home
	ID     lock.ID      `json:"id"`
	Joined *store.Value `json:"joined,omitempty"`

	// Narrowed is the zxid at which an entry joined that has now left some of its queues; Joined is
	// its value from now on.
	Narrowed int64 `json:"narrowed,omitempty"`

	Reason lock.Reason `json:"reason,omitempty"`
	At     int64       `json:"at_ms,omitempty"`
	Try    string      `json:"try,omitempty"`   // names the attempt that removed it
	Keyed  bool        `json:"keyed,omitempty"` // its key has a mark

	Was  json.RawMessage  `json:"was,omitempty"` // of the entry that left, see [store.Past]
	Note *store.ValueNote `json:"note,omitempty"`
}

func (c change) key() key { return key{c.Tenant, c.Lock, c.ID} }

// errDamaged means that no replica can have written the record.
var errDamaged = errors.New("the record is damaged")

func parseRecord(data []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, errors.Join(errDamaged, err)
	}
	for _, c := range r.Changes {
		if c.Joined == nil {
			continue
		}
		if err := c.Joined.Check(c.key().pastKey()); err != nil {
			return nil, errors.Join(errDamaged, err)
		}
	}
	return r, nil
}

// ends returns the ends in a record.
func (r *record) ends() []end {
	var ends []end
	for _, c := range r.Changes {
		if c.Joined != nil {
			continue
		}
		ended := store.End{
			ID: c.ID, Tenant: c.Tenant, Reason: c.Reason, At: c.At, Was: c.Was, Note: c.Note,
		}
		ends = append(ends, end{ended, c.Keyed})
	}
	return ends
}
