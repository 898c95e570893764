// Package kept is the form in which stores keep entries and their ends. It is
// JSON, so that a person with etcdctl or zkCli can read a queue, and one form, so
// that what is said of one store is true of the other.
package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// Parse reads the value of an entry's key. An error says what is wrong with it:
// that it is no entry, or that no replica can have written it.
func Parse(key Key, data []byte) (*Entry, error) {
	var k Entry
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, err
	}
	if err := k.Check(key); err != nil {
		return nil, err
	}
	return &k, nil
}

// Check returns what says that no replica can have written this for key.
func (k *Entry) Check(key Key) error {
	if k.TTL <= 0 || k.TTL > lock.MaxTTL.Milliseconds() {
		return fmt.Errorf("a TTL of %d ms", k.TTL)
	}
	claims := k.claims(key)
	if err := lock.CheckClaims(claims, len(k.Claims) > 0); err != nil {
		return err
	}
	switch {
	case !slices.ContainsFunc(claims, func(c lock.Claim) bool { return c.Name == key.Lock }):
		return fmt.Errorf("claims that are not of %s", key.Lock)
	case !lock.IsCanonical(claims):
		return errors.New("claims that are out of order")
	}
	return nil
}

// claims returns what the entry at key asks of each lock.
func (k *Entry) claims(key Key) []lock.Claim {
	if len(k.Claims) == 0 {
		return []lock.Claim{{Name: key.Lock, Mode: k.Mode, Limit: k.Limit}}
	}
	claims := make([]lock.Claim, len(k.Claims))
	for i, c := range k.Claims {
		claims[i] = lock.Claim(c)
	}
	return claims
}

// Entry returns the entry at key that was written at number.
func (k *Entry) Entry(key Key, number uint64) *lock.Entry {
	e := &lock.Entry{
		ID: key.ID, Tenant: key.Tenant, Claims: k.claims(key), Set: len(k.Claims) > 0,
		Holder: k.Holder, Named: k.Named, Metadata: k.Metadata, Request: k.Request,
		TTL:        time.Duration(k.TTL) * time.Millisecond,
		EnqueuedAt: time.UnixMilli(k.Enqueued).UTC(),
		Number:     number, Handle: k.Handle,
	}
	if k.Until != 0 {
		e.WaitUntil = time.UnixMilli(k.Until).UTC()
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
