package auth

import "context"

// What tests of the package from outside cannot see otherwise.

const (
	AskCooldown = askCooldown
	AbsentFor   = absentFor
	MaxTried    = maxTried
)

var CheckRedirect = checkRedirect

// Cached returns how many tokens are remembered, whether still good or not, or
// -1 if the places and the tokens found by digest do not agree.
func (v *Verifier) Cached() int {
	n := 0
	for i := range v.cache.shards {
		s := &v.cache.shards[i]
		s.mu.RLock()
		n += len(s.byDigest)
		agree := len(s.ring) == len(s.byDigest)
		s.mu.RUnlock()
		if !agree {
			return -1
		}
	}
	return n
}

// CacheLimit returns how many tokens are remembered at most.
func (v *Verifier) CacheLimit() int {
	n := 0
	for i := range v.cache.shards {
		n += v.cache.shards[i].limit
	}
	return n
}

// Shrink has fewer tokens remembered, before any is, so that a test need not sign
// tens of thousands to fill the memory.
func (v *Verifier) Shrink(tokens int) {
	for i := range v.cache.shards {
		v.cache.shards[i].limit = tokens / cacheShards
	}
}

// VerifyAnew makes every check without the memory of verified tokens.
func (v *Verifier) VerifyAnew(ctx context.Context, raw string) error {
	_, _, err := v.parse(ctx, raw)
	return err
}
