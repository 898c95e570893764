package zookeeper

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// value is what the primary node of an entry holds: everything but what its path
// says. It is JSON, so that a person with zkCli can read the queue.
type value struct {
	Handle   int64             `json:"handle"`
	Mode     lock.Mode         `json:"mode,omitempty"` // of an entry with one claim
	Limit    int               `json:"limit,omitempty"`
	Claims   []claimValue      `json:"claims,omitempty"` // of a set
	Holder   string            `json:"holder"`
	Named    bool              `json:"named,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	TTL      int64             `json:"ttl_ms"`
	Enqueued int64             `json:"enqueued_ms"`
	Until    int64             `json:"wait_until_ms,omitempty"`
	Request  string            `json:"request,omitempty"`
}

type claimValue struct {
	Name  string    `json:"name"`
	Mode  lock.Mode `json:"mode"`
	Limit int       `json:"limit,omitempty"`
}

func valueOf(e *lock.Entry, handle int64) *value {
	v := &value{
		Handle: handle, Holder: e.Holder, Named: e.Named, Metadata: e.Metadata, Request: e.Request,
		TTL: e.TTL.Milliseconds(), Enqueued: e.EnqueuedAt.UnixMilli(),
	}
	if !e.WaitUntil.IsZero() {
		v.Until = e.WaitUntil.UnixMilli()
	}
	if !e.Set {
		v.Mode, v.Limit = e.Claims[0].Mode, e.Claims[0].Limit
		return v
	}
	for _, c := range e.Claims {
		v.Claims = append(v.Claims, claimValue(c))
	}
	return v
}

// entry returns the entry at k that was written at number.
func (v *value) entry(k key, number uint64) *lock.Entry {
	e := &lock.Entry{
		ID: k.id, Tenant: k.tenant, Holder: v.Holder, Named: v.Named, Metadata: v.Metadata, Request: v.Request,
		TTL:        time.Duration(v.TTL) * time.Millisecond,
		EnqueuedAt: time.UnixMilli(v.Enqueued).UTC(),
		Number:     number, Handle: v.Handle,
	}
	if v.Until != 0 {
		e.WaitUntil = time.UnixMilli(v.Until).UTC()
	}
	if len(v.Claims) == 0 {
		e.Claims = []lock.Claim{{Name: k.lock, Mode: v.Mode, Limit: v.Limit}}
		return e
	}
	e.Set = true
	for _, c := range v.Claims {
		e.Claims = append(e.Claims, lock.Claim(c))
	}
	return e
}

func decodeValue(k key, data []byte) (*value, error) {
	var v value
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	switch {
	case v.TTL <= 0:
		return nil, fmt.Errorf("a TTL of %d ms", v.TTL)
	case len(v.Claims) == 0 && v.Mode == "", len(v.Claims) > 0 && v.Claims[0].Name != k.lock:
		return nil, fmt.Errorf("claims that are not of %s", k.lock)
	}
	return &v, nil
}

// damagedTTL is the lease of an entry that cannot be read.
const damagedTTL = time.Minute

// damaged stands for an entry that cannot be read. It keeps its place, alone, so
// that nobody comes to hold beside its holder; unless that one goes on to renew
// it, it expires.
func damaged(k key, number uint64, handle int64) *lock.Entry {
	return &lock.Entry{
		ID: k.id, Tenant: k.tenant, Claims: []lock.Claim{{Name: k.lock, Mode: lock.Exclusive}},
		Holder: "unreadable", TTL: damagedTTL, EnqueuedAt: time.Now().UTC().Truncate(time.Millisecond),
		Number: number, Handle: handle,
	}
}

// record is what one transaction has changed.
type record struct {
	Changes []change `json:"changes,omitempty"`

	// Meta says that what the store remembers about itself has changed.
	Meta bool `json:"meta,omitempty"`
}

// change is one entry that came, with its value, or one that went.
type change struct {
	Tenant string  `json:"tenant"`
	Lock   string  `json:"lock"` // the entry's first
	ID     lock.ID `json:"id"`
	Joined *value  `json:"joined,omitempty"`

	Czxid  int64       `json:"czxid,omitempty"` // of the entry that went
	Reason lock.Reason `json:"reason,omitempty"`
	At     int64       `json:"at_ms,omitempty"`
	Try    string      `json:"try,omitempty"` // names the attempt that removed it
}

func (c change) key() key { return key{c.Tenant, c.Lock, c.ID} }

// ends returns the ends that are to be remembered.
func (r *record) ends() []end {
	var ends []end
	for _, c := range r.Changes {
		if c.Joined == nil && c.Reason != lock.Withdrawn {
			ends = append(ends, end{c.ID, c.Reason, c.At})
		}
	}
	return ends
}

// end is one remembered removal; many share a node.
type end struct {
	ID     lock.ID     `json:"id"`
	Reason lock.Reason `json:"reason"`
	At     int64       `json:"at_ms"`
}

func (e end) ended() lock.Ended {
	return lock.Ended{ID: e.ID, Reason: e.Reason, At: time.UnixMilli(e.At)}
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bug: %T cannot be encoded: %v", v, err))
	}
	return data
}
