package zookeeper

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// layout is the path of all the store's nodes; see the package comment.
type layout string

func (r layout) epoch() string   { return string(r) + "/epoch" }
func (r layout) links() string   { return string(r) + "/links" }
func (r layout) logs() string    { return string(r) + "/logs" }
func (r layout) ended() string   { return string(r) + "/ended" }
func (r layout) keys() string    { return string(r) + "/keys" }
func (r layout) entries() string { return string(r) + "/entries" }

// parts are the nodes that always exist, without meta.
func (r layout) parts() []string {
	return []string{
		r.epoch(), r.links(), r.logs(), r.ended(), r.keys(), r.entries(), r.records(), r.lives(),
	}
}

func (r layout) log(epoch int32) string     { return fmt.Sprintf("%s/%010d", r.logs(), epoch) }
func (r layout) shard(name string) string   { return r.entries() + "/" + name }
func recordPath(log string, n int32) string { return fmt.Sprintf("%s/%010d", log, n) }

// Entries are spread over shards by the hashes of their lock and id. A lock's entries are in up
// to shardsPerLock of them, so no list of children gets long. 100 000 entries are 100 names in a
// shard if they are in many locks, and 3 000 if they are in one.
const (
	lockGroups    = 32
	shardsPerLock = 32
)

func (r layout) shardOf(tenant, name string, id lock.ID) string {
	return r.shard(shardName(tenant, name, hash(string(id))))
}

// shardsOf returns all the shards that entries of the lock can be in.
func (r layout) shardsOf(ref lock.Ref) []string {
	all := make([]string, shardsPerLock)
	for i := range all {
		all[i] = r.shard(shardName(ref.Tenant, ref.Name, uint32(i)))
	}
	return all
}

func shardName(tenant, name string, idHash uint32) string {
	return hex3(hash(tenant+","+name)%lockGroups*shardsPerLock + idHash%shardsPerLock)
}

// hex3 writes the number of a shard, of three digits.
func hex3(n uint32) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[n>>8&15], digits[n>>4&15], digits[n&15]})
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum32()
}

// key names an entry by its home: an id is unique there in its tenant.
type key struct {
	tenant, lock string
	id           lock.ID
}

func (k key) pastKey() store.Key { return store.Key{Tenant: k.tenant, Lock: k.lock, ID: k.id} }

// conflict returns the conflict key of the entry and its mark, which no two writes of one
// transaction may share.
func (k key) conflict() string { return "id," + k.tenant + "," + string(k.id) }

func keyOf(e *lock.Entry) key { return key{e.Tenant, e.Home(), e.ID} }

// primary returns the path of the entry at its home, which has all data.
func (r layout) primary(k key) string {
	return r.shardOf(k.tenant, k.lock, k.id) + "/" + k.tenant + "," + k.lock + "," + string(k.id)
}

// secondaries returns the paths of the entry in those of the locks that are not its home. These
// nodes have no data; their names lead to the primary.
func (r layout) secondaries(k key, claims []lock.Claim) (paths []string) {
	for _, c := range claims {
		if c.Name != k.lock {
			name := strings.Join([]string{k.tenant, c.Name, string(k.id), k.lock}, ",")
			paths = append(paths, r.shardOf(k.tenant, c.Name, k.id)+"/"+name)
		}
	}
	return paths
}

// keyShard returns the shard of an idempotency key's mark, which is unique in its tenant.
func (r layout) keyShard(tenant string, id lock.ID) string {
	return r.keys() + "/" + hex3(hash(tenant+","+string(id))%(lockGroups*shardsPerLock))
}

func (r layout) mark(tenant string, id lock.ID) string {
	return r.keyShard(tenant, id) + "/" + tenant + "," + string(id)
}

func (r layout) lease(k key, handle int64) string { return leaseOf(r.primary(k), handle) }

// leaseOf returns the path of the lease of the entry at a path.
func leaseOf(primary string, handle int64) string {
	if handle == 0 {
		return primary + "/lease"
	}
	return fmt.Sprintf("%s/%016x", primary, uint64(handle))
}

// fresh reports whether e's id is never used again. Then its lease need not exist before the
// first renewal, nor have a unique name.
func fresh(e *lock.Entry) bool { return e.Handle == 0 }

// parseName parses a child of a shard: the entry's key, the lock of this node, and whether it is
// the primary one.
func parseName(name string) (k key, in string, primary, ok bool) {
	parts := strings.Split(name, ",")
	if len(parts) < 3 || len(parts) > 4 || parts[2] == "" || !lock.ValidTenant(parts[0]) ||
		!lock.ValidName(parts[1]) && (parts[1] != lock.PoolHome || len(parts) == 4) {
		return key{}, "", false, false
	}
	k = key{parts[0], parts[1], lock.ID(parts[2])}
	if len(parts) == 4 {
		k.lock = parts[3]
	}
	return k, parts[1], len(parts) == 3, true
}
