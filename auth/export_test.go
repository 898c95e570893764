package auth

import "context"

// What tests of the package from outside cannot see otherwise.

const (
	MaxCached   = maxCachedCount
	AskCooldown = askCooldown
	AbsentFor   = absentFor
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

// VerifyAnew makes every check without the memory of verified tokens.
func (v *Verifier) VerifyAnew(ctx context.Context, raw string) error {
	_, _, err := v.parse(ctx, raw)
	return err
}
