// Package kept is the form in which stores keep entries and their ends. It is
// JSON, so that a person with etcdctl or zkCli can read a queue, and one form, so
// that what is said of one store is true of the other.
package kept

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Entry is everything of an entry but what its key says, and its number.
type Entry struct {
	Handle   int64             `json:"handle,omitempty"` // where the store does not keep it beside the value
	Mode     lock.Mode         `json:"mode,omitempty"`   // of an entry with one claim
	Limit    int               `json:"limit,omitempty"`
	Claims   []Claim           `json:"claims,omitempty"` // of a set
	Holder   string            `json:"holder"`
	Named    bool              `json:"named,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	TTL      int64             `json:"ttl_ms"`
	Enqueued int64             `json:"enqueued_ms"`
	Until    int64             `json:"wait_until_ms,omitempty"`
	Request  string            `json:"request,omitempty"`
}

// Claim is one lock of a set.
type Claim struct {
	Name  string    `json:"name"`
	Mode  lock.Mode `json:"mode"`
	Limit int       `json:"limit,omitempty"`
}

// Key is what a store's key says of an entry: Lock is one of its locks.
type Key struct {
	Tenant, Lock string
	ID           lock.ID
}

// Of returns the form of e.
func Of(e *lock.Entry) *Entry {
	k := &Entry{
		Holder: e.Holder, Named: e.Named, Metadata: e.Metadata, Request: e.Request,
		TTL: e.TTL.Milliseconds(), Enqueued: e.EnqueuedAt.UnixMilli(),
	}
	if !e.WaitUntil.IsZero() {
		k.Until = e.WaitUntil.UnixMilli()
	}
	if !e.Set {
		k.Mode, k.Limit = e.Claims[0].Mode, e.Claims[0].Limit
		return k
	}
	for _, c := range e.Claims {
		k.Claims = append(k.Claims, Claim(c))
	}
	return k
}

// Parse reads the value of an entry's key. An error says what is wrong with it.
func Parse(key Key, data []byte) (*Entry, error) {
	var k Entry
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, err
	}
	switch {
	case k.TTL <= 0:
		return nil, fmt.Errorf("a TTL of %d ms", k.TTL)
	case len(k.Claims) == 0 && k.Mode == "", len(k.Claims) > 0 && !k.claims(key.Lock):
		return nil, fmt.Errorf("claims that are not of %s", key.Lock)
	}
	return &k, nil
}

func (k *Entry) claims(name string) bool {
	for _, c := range k.Claims {
		if c.Name == name {
			return true
		}
	}
	return false
}

// Entry returns the entry at key that was written at number.
func (k *Entry) Entry(key Key, number uint64) *lock.Entry {
	e := &lock.Entry{
		ID: key.ID, Tenant: key.Tenant, Holder: k.Holder, Named: k.Named, Metadata: k.Metadata, Request: k.Request,
		TTL:        time.Duration(k.TTL) * time.Millisecond,
		EnqueuedAt: time.UnixMilli(k.Enqueued).UTC(),
		Number:     number, Handle: k.Handle,
	}
	if k.Until != 0 {
		e.WaitUntil = time.UnixMilli(k.Until).UTC()
	}
	if len(k.Claims) == 0 {
		e.Claims = []lock.Claim{{Name: key.Lock, Mode: k.Mode, Limit: k.Limit}}
		return e
	}
	e.Set = true
	for _, c := range k.Claims {
		e.Claims = append(e.Claims, lock.Claim(c))
	}
	return e
}

// damagedTTL is the lease of an entry that cannot be read.
const damagedTTL = time.Minute

// Damaged stands for an entry that cannot be read. It keeps its place, alone, so
// that nobody comes to hold beside its holder; unless that one goes on to renew
// it, it expires.
func Damaged(key Key, number uint64, handle int64) *lock.Entry {
	return &lock.Entry{
		ID: key.ID, Tenant: key.Tenant, Claims: []lock.Claim{{Name: key.Lock, Mode: lock.Exclusive}},
		Holder: "unreadable", TTL: damagedTTL, EnqueuedAt: time.Now().UTC().Truncate(time.Millisecond),
		Number: number, Handle: handle,
	}
}

// End is one remembered removal; several share a key.
type End struct {
	ID     lock.ID     `json:"id"`
	Reason lock.Reason `json:"reason"`
	At     int64       `json:"at_ms"`
}

// Ended returns what the feed tells of it.
func (e End) Ended() lock.Ended {
	return lock.Ended{ID: e.ID, Reason: e.Reason, At: time.UnixMilli(e.At)}
}

// Encode returns the JSON of a value of this package, or of one made of such.
func Encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bug: %T cannot be encoded: %v", v, err))
	}
	return data
}
