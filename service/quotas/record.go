package quotas

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/store"
)

// setting is what operators have set for a tenant.
type setting struct {
	overrides quota.Overrides
	by        string // the subject of who did
	at        time.Time
	reason    string
}

// form is a setting as it is stored.
type form struct {
	Limits quota.Overrides `json:"limits"`
	By     string          `json:"by"`
	At     int64           `json:"at_ms"`
	Reason string          `json:"reason,omitempty"`
}

func keyOf(tenant string) store.RecordKey {
	return store.RecordKey{Kind: Kind, Tenant: tenant, ID: "limits"}
}

func (s *setting) encode() []byte {
	return store.Encode(form{Limits: s.overrides, By: s.by, At: s.at.UnixMilli(), Reason: s.reason})
}

// parse reads a setting, or says why the record is none.
func parse(r store.Record) (*setting, error) {
	var f form
	if r.ID != keyOf(r.Tenant).ID {
		return nil, errors.New("it has an id that is none of a quota")
	}
	if err := json.Unmarshal(r.Value, &f); err != nil {
		return nil, errors.New("it is not the JSON of a quota: " + err.Error())
	}
	if f.Limits == nil {
		return nil, errors.New("it has no limits")
	}
	return &setting{overrides: f.Limits, by: f.By, at: time.UnixMilli(f.At).UTC(), reason: f.Reason}, nil
}
