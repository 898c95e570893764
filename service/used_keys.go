package service

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	// maxKeys bounds the idempotency keys that a tenant may use at one replica while the store keeps
	// them. Each takes the store about 600 bytes for that time.
	maxKeys     = 1_000_000
	keysKept    = 12 // minutes
	keysCounted = time.Minute
)

// usedKeys counts the idempotency keys that tenants have used, by minute.
type usedKeys struct {
	most int

	mu      sync.Mutex
	since   time.Time                // start of the current minute
	minutes [keysKept]map[string]int // by tenant, the current minute first
	all     map[string]int
}

func newUsedKeys(most int) *usedKeys {
	if most == 0 {
		most = maxKeys
	}
	return &usedKeys{most: most, since: time.Now(), all: map[string]int{}}
}

// limited returns why an entry with a key must not be written, or nil: its tenant has used too many
// keys. An entry without a key always passes.
func (k *usedKeys) limited(e *lock.Entry) error {
	if !e.Resumable() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turn(time.Now())
	if k.all[e.Tenant] < k.most {
		return nil
	}
	return &lock.Error{
		Code: lock.RateLimited, RetryAfter: keysCounted,
		Detail: fmt.Sprintf("the tenant has used %d idempotency keys within %d minutes, its maximum; "+
			"retry after Retry-After, or send the request without a key",
			k.most, keysKept),
	}
}

// use counts the key of an entry that was written, or may have been.
func (k *usedKeys) use(e *lock.Entry, written bool, err error) {
	failed, is := errors.AsType[*lock.Error](err)
	if !e.Resumable() || !written && !(is && failed.OutcomeUnknown) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turn(time.Now())
	if k.minutes[0] == nil {
		k.minutes[0] = map[string]int{}
	}
	k.minutes[0][e.Tenant]++
	k.all[e.Tenant]++
}

// turn starts a new minute for each one that has passed. The caller holds mu.
func (k *usedKeys) turn(now time.Time) {
	passed := int(now.Sub(k.since) / keysCounted)
	k.since = k.since.Add(time.Duration(passed) * keysCounted)
	for range min(passed, keysKept) {
		for tenant, n := range k.minutes[keysKept-1] {
			if k.all[tenant] -= n; k.all[tenant] == 0 {
				delete(k.all, tenant)
			}
		}
		copy(k.minutes[1:], k.minutes[:])
		k.minutes[0] = nil
	}
}
