package auth

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	cacheShards   = 16
	cachePerShard = 625 // 10 000 tokens in all, about 5 MB
)

// digest is the SHA-256 of a raw token: what the cache knows a token by, so
// that a dump of the process's memory is not a list of credentials.
type digest = [sha256.Size]byte

// digestOf reads the string where it stands: converting it would allocate and
// copy the token at every request.
func digestOf(raw string) digest {
	return sha256.Sum256(unsafe.Slice(unsafe.StringData(raw), len(raw))) //nolint:gosec // G103: only read, and not kept
}

// verified is a token that passed every check.
type verified struct {
	digest    digest
	principal *Principal
	key       *key
	until     time.Time // exp and leeway
	used      atomic.Bool
	place     int // in the shard's ring, guarded by the shard's mutex
}

// valid reports whether the token is still good: its time is not over and its
// key is still one of ours.
func (t *verified) valid(now time.Time) bool {
	return now.Before(t.until) && t.key.used.Err() == nil
}

// cache remembers verified tokens. Only tokens that passed every check get in,
// so that a forged token cannot evict a good one.
type cache struct {
	shards [cacheShards]shard
}

// shard evicts by the clock algorithm: a hit marks the token, the hand takes
// the first token that no longer stands or was not hit since its last round. A
// burst of tokens that are used once therefore displaces its own kind before
// those in use. A hit takes only the read lock.
type shard struct {
	mu       sync.RWMutex
	byDigest map[digest]*verified
	ring     []*verified
	limit    int // of the ring's length
	hand     int
}

func newCache() *cache {
	c := &cache{}
	for i := range c.shards {
		c.shards[i].byDigest, c.shards[i].limit = map[digest]*verified{}, cachePerShard
	}
	return c
}

func (c *cache) shard(d digest) *shard { return &c.shards[d[0]%cacheShards] }

// find returns nil if the token is not known or no longer good.
func (c *cache) find(d digest, now time.Time) *Principal {
	s := c.shard(d)
	s.mu.RLock()
	t := s.byDigest[d]
	s.mu.RUnlock()
	if t == nil || !t.valid(now) {
		return nil
	}
	// Read first: a write would move the cache line between cores at every hit.
	if !t.used.Load() {
		t.used.Store(true)
	}
	return t.principal
}

func (c *cache) add(t *verified, now time.Time) {
	s := c.shard(t.digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.place = s.room(t.digest, now)
	s.ring[t.place] = t
	s.byDigest[t.digest] = t
}

// room returns a place of the ring that may be overwritten.
func (s *shard) room(d digest, now time.Time) int {
	if old := s.byDigest[d]; old != nil {
		return old.place // two requests brought one new token, or its key came back
	}
	if len(s.ring) < s.limit {
		s.ring = append(s.ring, nil)
		return len(s.ring) - 1
	}
	return s.evict(now)
}

// evict looks at no place more than twice, even if every token is hit again
// while it looks.
func (s *shard) evict(now time.Time) int {
	for range 2 * len(s.ring) {
		t := s.ring[s.hand]
		if !t.valid(now) || !t.used.Swap(false) {
			break
		}
		s.advance()
	}
	place := s.hand
	delete(s.byDigest, s.ring[place].digest)
	s.advance()
	return place
}

func (s *shard) advance() { s.hand = (s.hand + 1) % len(s.ring) }
