package lock_test

import (
	"strconv"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/lock"
)

// front is what [lock.Front] means, from first principles: the longest prefix in
// which every claim tolerates each claim before it, and the permits up to and with its own stay
// within its own limit.
func front(claims []lock.Claim) int {
	permits := 0
	for i, c := range claims {
		if permits += c.Permits; c.Mode == lock.Semaphore && permits > c.Limit {
			return i
		}
		for _, before := range claims[:i] {
			if !tolerates(before, c) {
				return i
			}
		}
	}
	return len(claims)
}

func tolerates(a, b lock.Claim) bool {
	if a.Mode != b.Mode {
		return false
	}
	return a.Mode != lock.Exclusive
}

// names of the locks that generated entries ask for.
func names() []string { return []string{"a", "b", "c", "d", "e", "f", "g", "h"} }

func claims() *rapid.Generator[lock.Claim] {
	return rapid.Custom(func(t *rapid.T) lock.Claim {
		switch rapid.IntRange(0, 5).Draw(t, "mode") {
		case 0, 1:
			return lock.Claim{Mode: lock.Shared}
		case 2, 3:
			limit := rapid.SampledFrom([]int{2, 2, 2, 1, 3, 7}).Draw(t, "limit")
			permits := min(limit, rapid.SampledFrom([]int{1, 1, 2, 5}).Draw(t, "permits"))
			return lock.Claim{Mode: lock.Semaphore, Limit: limit, Permits: permits}
		default:
			return lock.Claim{Mode: lock.Exclusive}
		}
	})
}

// entries generates entries without a number: of one lock mostly, of up to six
// of the eight otherwise.
func entries(serial *int) *rapid.Generator[*lock.Entry] {
	return rapid.Custom(func(t *rapid.T) *lock.Entry {
		*serial++
		e := &lock.Entry{
			ID:     lock.ID("e" + strconv.Itoa(*serial)),
			Tenant: rapid.SampledFrom([]string{"t", "t", "t", "u"}).Draw(t, "tenant"),
		}
		size := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 6}).Draw(t, "size")
		for _, name := range rapid.Permutation(names()).Draw(t, "names")[:size] {
			c := claims().Draw(t, "claim")
			c.Name = name
			e.Claims = append(e.Claims, c)
		}
		e.Set = size > 1
		lock.Canonical(e.Claims)
		return e
	})
}
