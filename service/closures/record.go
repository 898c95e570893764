package closures

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// ofTenant is what a tenant's record holds. Nothing changes it.
type ofTenant struct {
	version uint64 // of the record, 0 if there is none
	all     []*lock.Closure
}

// form is the stored form of a closure. A record has a list of them, the oldest first.
type form struct {
	ID          string `json:"id"`
	Locks       string `json:"locks"`
	Since       int64  `json:"since_ms"`
	Until       int64  `json:"until_ms"`
	Reason      string `json:"reason"`
	Description string `json:"description,omitempty"`
	By          string `json:"by"`
}

func encode(all []*lock.Closure) []byte {
	forms := make([]form, len(all))
	for i, c := range all {
		forms[i] = form{
			ID: string(c.ID), Locks: c.Locks.String(), Since: c.Since.UnixMilli(),
			Until: c.Until.UnixMilli(), Reason: c.Reason, Description: c.Description, By: c.By,
		}
	}
	return store.Encode(forms)
}

// parse reads a tenant's closures, or returns why the record does not hold them.
func parse(r store.Record) (ofTenant, error) {
	of := ofTenant{version: r.Version}
	var forms []form
	if err := json.Unmarshal(r.Value, &forms); err != nil {
		return of, errors.New("it is not the JSON of closures: " + err.Error())
	}
	for _, f := range forms {
		locks, err := lock.ParsePattern(f.Locks)
		if err != nil || f.Until == 0 {
			return of, errors.New("a closure has no locks, or no end")
		}
		of.all = append(of.all, &lock.Closure{
			ID: lock.ID(f.ID), Tenant: r.Tenant, Locks: locks,
			Since: time.UnixMilli(f.Since).UTC(), Until: time.UnixMilli(f.Until).UTC(),
			Reason: f.Reason, Description: f.Description, By: f.By, Number: r.Version,
		})
	}
	return of, nil
}
