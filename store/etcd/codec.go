package etcd

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// The layout under the store's prefix. Tenants, lock names and ids contain no
// slash, so every key has one reading and every prefix ends at a segment.
const (
	entriesDir = "entries/" // <tenant>/<lock>/<id> → value
	endedDir   = "ended/"   // <10 s since 1970, decimal>/<batch> → []end
	metaDir    = "meta/"    // see meta.go
)

// value is what an entry's key holds: everything but what the key itself says.
// It is JSON, so that a person with etcdctl can read the queue.
type value struct {
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

// end is one remembered removal; several share a key.
type end struct {
	ID     lock.ID     `json:"id"`
	Reason lock.Reason `json:"reason"`
	At     int64       `json:"at_ms"`
}

func (s *Store) entryKey(tenant, name string, id lock.ID) string {
	return s.prefix + entriesDir + tenant + "/" + name + "/" + string(id)
}

// primaryKey is the entry's key in its first lock: the one that decides whether
// the entry exists.
func (s *Store) primaryKey(e *lock.Entry) []byte {
	return []byte(s.entryKey(e.Tenant, e.Name(), e.ID))
}

// isPrimary reports whether e was read from its first key.
func (s *Store) isPrimary(e *lock.Entry, key []byte) bool {
	return !e.Set || string(key) == s.entryKey(e.Tenant, e.Name(), e.ID)
}

func encode(e *lock.Entry) ([]byte, error) {
	v := value{
		Holder: e.Holder, Named: e.Named, Metadata: e.Metadata, Request: e.Request,
		TTL: e.TTL.Milliseconds(), Enqueued: e.EnqueuedAt.UnixMilli(),
	}
	if !e.WaitUntil.IsZero() {
		v.Until = e.WaitUntil.UnixMilli()
	}
	if e.Set {
		for _, c := range e.Claims {
			v.Claims = append(v.Claims, claimValue(c))
		}
	} else {
		v.Mode, v.Limit = e.Claims[0].Mode, e.Claims[0].Limit
	}
	return json.Marshal(v)
}

// decode reads an entry from a key below entries/ and its value.
func (s *Store) decode(key, val []byte, revision, lease int64) (*lock.Entry, error) {
	if e := s.own.take(key); e != nil {
		e.Number, e.Handle = s.number(revision), lease
		return e, nil
	}
	tenant, name, id, ok := s.splitKey(key)
	if !ok {
		return nil, fmt.Errorf("key %q is not an entry's", key)
	}
	var v value
	if err := json.Unmarshal(val, &v); err != nil {
		return nil, fmt.Errorf("value of key %q: %w", key, err)
	}
	e := &lock.Entry{
		ID: id, Tenant: tenant, Holder: v.Holder, Named: v.Named, Metadata: v.Metadata, Request: v.Request,
		TTL:        time.Duration(v.TTL) * time.Millisecond,
		EnqueuedAt: time.UnixMilli(v.Enqueued).UTC(),
		Number:     s.number(revision), Handle: lease,
	}
	if v.Until != 0 {
		e.WaitUntil = time.UnixMilli(v.Until).UTC()
	}
	if len(v.Claims) == 0 {
		e.Claims = []lock.Claim{{Name: name, Mode: v.Mode, Limit: v.Limit}}
		return e, nil
	}
	e.Set = true
	for _, c := range v.Claims {
		e.Claims = append(e.Claims, lock.Claim(c))
	}
	return e, nil
}

func (s *Store) splitKey(key []byte) (tenant, name string, id lock.ID, ok bool) {
	rest, ok := strings.CutPrefix(string(key), s.prefix+entriesDir)
	if !ok {
		return "", "", "", false
	}
	tenant, rest, _ = strings.Cut(rest, "/")
	name, last, ok := strings.Cut(rest, "/")
	return tenant, name, lock.ID(last), ok && tenant != "" && name != "" && last != ""
}
