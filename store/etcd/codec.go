package etcd

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// The layout under the store's prefix. Tenants, lock names and ids contain no
// slash, so every key has one reading and every prefix ends at a segment.
const (
	entriesDir = "entries/" // <tenant>/<lock>/<id> → store.Value at its home, else a pointer
	keysDir    = "keys/"    // <tenant>/<id> → mark
	endedDir   = "ended/"   // <10 s since 1970, decimal>/<batch> → []store.End
)

func (ks *keyspace) entryKey(tenant, name string, id lock.ID) string {
	return ks.prefix + entriesDir + tenant + "/" + name + "/" + string(id)
}

// primaryKey returns the entry's key at its home: the one that decides whether the entry exists.
func (ks *keyspace) primaryKey(e *lock.Entry) []byte {
	return []byte(ks.entryKey(e.Tenant, e.Home(), e.ID))
}

// namesOf returns the names under which the entry has keys: its home first, then its other locks.
func namesOf(e *lock.Entry) []string {
	names := []string{e.Home()}
	for _, c := range e.Claims {
		if c.Name != names[0] {
			names = append(names, c.Name)
		}
	}
	return names
}

// pointer is the value of a set's entry under its other names than its home.
type pointer struct {
	First string `json:"first"`
}

const pointerStart = `{"first":`

// isHome reports whether a key or a mark can name a home.
func isHome(name string) bool { return lock.ValidName(name) || name == lock.PoolHome }

// pointsTo returns the key that kv points to, if kv is a set's entry under another name than its
// home.
func (ks *keyspace) pointsTo(kv *mvccpb.KeyValue) (primary []byte, ok bool) {
	if !hasPrefix(kv.Value, pointerStart) {
		return nil, false
	}
	var p pointer
	k, ok := ks.splitKey(kv.Key)
	if !ok || json.Unmarshal(kv.Value, &p) != nil || !isHome(p.First) {
		return nil, false
	}
	return []byte(ks.entryKey(k.Tenant, p.First, k.ID)), true
}

// primaryAt decodes an entry at its home. It returns nil for another key of the entry, or an
// unreadable value.
func (ks *keyspace) primaryAt(kv *mvccpb.KeyValue) *lock.Entry {
	if _, ok := ks.pointsTo(kv); ok {
		return nil
	}
	if e := ks.entryOf(kv); e != nil && ks.isPrimary(e, kv.Key) {
		return e
	}
	return nil
}

// isPrimary reports whether e was read from its home.
func (ks *keyspace) isPrimary(e *lock.Entry, key []byte) bool {
	return !e.Set || string(key) == string(ks.primaryKey(e))
}

// narrowed reports whether kv, an entry's value, was put a second time.
func narrowed(kv *mvccpb.KeyValue) bool { return kv.ModRevision > kv.CreateRevision }

// isAt reports whether kvs, the answer to a read of e's home, are exactly the entry e, narrowed or
// not.
func (ks *keyspace) isAt(e *lock.Entry, kvs []*mvccpb.KeyValue) bool {
	return len(kvs) > 0 && kvs[0].CreateRevision == ks.revision(e.Number)
}

// decode reads an entry. An unreadable entry keeps its position while its lease lasts, because
// its holder may not know. A key without a lease is not Fencepost's, and must not block a lock
// forever.
func (ks *keyspace) decode(kv *mvccpb.KeyValue) (*lock.Entry, error) {
	number := ks.number(kv.CreateRevision)
	if e := ks.own.take(kv.Key); e != nil && !narrowed(kv) {
		e.Number, e.Handle = number, kv.Lease
		return e, nil
	}
	key, ok := ks.splitKey(kv.Key)
	if !ok {
		return nil, fmt.Errorf("key %q is not an entry's", kv.Key)
	}
	k, err := store.ParseValue(key, kv.Value)
	switch {
	case err != nil && kv.Lease == 0:
		return nil, fmt.Errorf("value of key %q: %w", kv.Key, err)
	case err != nil:
		ks.log.Error(
			"an entry cannot be read; it keeps its place until its lease ends", "key", string(kv.Key),
			"error", err,
		)
		return store.Damaged(key, number, kv.Lease), nil
	}
	k.Handle = kv.Lease
	return k.Entry(key, number), nil
}

func (ks *keyspace) splitKey(key []byte) (k store.Key, ok bool) {
	rest, ok := strings.CutPrefix(string(key), ks.prefix+entriesDir)
	if !ok {
		return k, false
	}
	k.Tenant, rest, _ = strings.Cut(rest, "/")
	name, last, ok := strings.Cut(rest, "/")
	k.Lock, k.ID = name, lock.ID(last)
	return k, ok && k.Tenant != "" && name != "" && last != ""
}

// entryOf decodes an entry. It reports what cannot be decoded, and leaves it out, so that it does
// not block its lock.
func (ks *keyspace) entryOf(kv *mvccpb.KeyValue) *lock.Entry {
	e, err := ks.decode(kv)
	if err != nil {
		ks.log.Error("an entry cannot be read and is passed over", "error", err)
		return nil
	}
	return e
}
