package etcd

import (
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// The layout under the store's prefix. Tenants, lock names and ids contain no
// slash, so every key has one reading and every prefix ends at a segment.
const (
	entriesDir = "entries/" // <tenant>/<lock>/<id> → store.Value
	endedDir   = "ended/"   // <10 s since 1970, decimal>/<batch> → []store.End
	metaDir    = "meta/"    // see meta.go
)

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

// decode reads an entry. One whose value cannot be read is reported and keeps its
// place for as long as its lease lasts: its holder may not know. What has no lease
// is not ours, and must not block a lock for ever.
func (s *Store) decode(kv *mvccpb.KeyValue) (*lock.Entry, error) {
	number := s.number(kv.CreateRevision)
	if e := s.own.take(kv.Key); e != nil {
		e.Number, e.Handle = number, kv.Lease
		return e, nil
	}
	key, ok := s.splitKey(kv.Key)
	if !ok {
		return nil, fmt.Errorf("key %q is not an entry's", kv.Key)
	}
	k, err := store.ParseValue(key, kv.Value)
	switch {
	case err != nil && kv.Lease == 0:
		return nil, fmt.Errorf("value of key %q: %w", kv.Key, err)
	case err != nil:
		s.log.Error("an entry cannot be read; it keeps its place until its lease ends", "key", string(kv.Key), "error", err)
		return store.Damaged(key, number, kv.Lease), nil
	}
	k.Handle = kv.Lease
	return k.Entry(key, number), nil
}

func (s *Store) splitKey(key []byte) (k store.Key, ok bool) {
	rest, ok := strings.CutPrefix(string(key), s.prefix+entriesDir)
	if !ok {
		return k, false
	}
	k.Tenant, rest, _ = strings.Cut(rest, "/")
	name, last, ok := strings.Cut(rest, "/")
	k.Lock, k.ID = name, lock.ID(last)
	return k, ok && k.Tenant != "" && name != "" && last != ""
}
