package closures

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// form is the stored form of a closure.
type form struct {
	Locks       string `json:"locks"`
	Since       int64  `json:"since_ms"`
	Until       int64  `json:"until_ms"`
	Reason      string `json:"reason"`
	Description string `json:"description,omitempty"`
	By          string `json:"by"`
}

func keyOf(c *lock.Closure) store.RecordKey {
	return store.RecordKey{Kind: Kind, Tenant: c.Tenant, ID: string(c.ID)}
}

func encode(c *lock.Closure) []byte {
	return store.Encode(form{
		Locks: c.Locks.String(), Since: c.Since.UnixMilli(), Until: c.Until.UnixMilli(),
		Reason: c.Reason, Description: c.Description, By: c.By,
	})
}

// parse reads a closure, or returns why the record is not one.
func parse(r store.Record) (*lock.Closure, error) {
	var f form
	if err := json.Unmarshal(r.Value, &f); err != nil {
		return nil, errors.New("it is not the JSON of a closure: " + err.Error())
	}
	locks, err := lock.ParsePattern(f.Locks)
	if err != nil || f.Until == 0 {
		return nil, errors.New("it has no locks, or no end")
	}
	return &lock.Closure{
		ID: lock.ID(r.ID), Tenant: r.Tenant, Locks: locks, Number: r.Version,
		Since: time.UnixMilli(f.Since).UTC(), Until: time.UnixMilli(f.Until).UTC(),
		Reason: f.Reason, Description: f.Description, By: f.By,
	}, nil
}
