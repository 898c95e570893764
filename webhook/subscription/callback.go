package subscription

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/fencepost/fencepost/store"
)

// CallbackKind is the kind of the small records that say which secrets sign callbacks,
// one for each tenant that has any.
const CallbackKind = "callback-secret"

// callbackID is the id of a tenant's record. It is what a [lock.Callback] names, so that a
// rotation counts for the callbacks that are waited for as well.
const callbackID = "current"

// callbackSecret says with what a tenant's callbacks are signed.
type callbackSecret struct {
	Tenant  string
	Created time.Time
	Version uint64
	Rotation
}

type callbackForm struct {
	Generation int      `json:"generation"`
	Rotated    []int64  `json:"rotated_ms,omitempty"`
	Salts      [][]byte `json:"salts,omitempty"`
	Created    int64    `json:"created_ms"`
}

func (c *callbackSecret) encode() []byte {
	return store.Encode(callbackForm{c.Generation, millis(c.Rotated), c.Salts, c.Created.UnixMilli()})
}

func parseCallback(r store.Record) (*callbackSecret, error) {
	var f callbackForm
	if err := json.Unmarshal(r.Value, &f); err != nil {
		return nil, errors.New("it is not the JSON of a callback secret")
	}
	if f.Generation < 1 || r.ID != callbackID {
		return nil, errors.New("it is no callback secret")
	}
	return &callbackSecret{
		r.Tenant, time.UnixMilli(f.Created).UTC(), r.Version,
		rotationOf(f.Generation, f.Rotated, f.Salts),
	}, nil
}

func callbackKey(tenant string) store.RecordKey {
	return store.RecordKey{Kind: CallbackKind, Tenant: tenant, ID: callbackID}
}
