package outbox

import (
	"sync"
	"time"
)

const (
	// keepsOfTenant is how many deliveries of a tenant this replica puts into the store in a second, in all its shards:
	// they wait in turns by shards for that, and the cursors with them. What was told meanwhile needs no place there.
	keepsOfTenant = 250

	// keepsAtOnce of them may come at the same moment, after a while without any.
	keepsAtOnce = 25

	// owedOfTenant is how many of a tenant's deliveries may be neither made nor kept yet, in all its shards: those take
	// 40 s to be kept. What is more it misses.
	owedOfTenant = 10_000
)

// keeping is how the owners of this replica's shards share what a tenant may have put into the store.
type keeping struct {
	mu sync.Mutex
	of map[string]*keptOf
}

// keptOf is what is known of a tenant.
type keptOf struct {
	spent  time.Time // until when what may be kept is used up; what is left from before is for keepsAtOnce
	queues int       // owners with whom some wait for their turns
	owed   int       // that are neither made nor kept
}

func (k *keeping) tenant(name string) *keptOf {
	t := k.of[name]
	if t == nil {
		if k.of == nil {
			k.of = map[string]*keptOf{}
		}
		t = &keptOf{}
		k.of[name] = t
	}
	return t
}

// take reports whether a tenant's delivery may be put into the store now. While some wait for their turns none may.
func (k *keeping) take(tenant string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.tenant(tenant)
	if t.queues > 0 || t.spent.After(now) {
		return false
	}
	t.spent = later(t.spent, now.Add(-keepsAtOnce*time.Second/keepsOfTenant)).Add(time.Second / keepsOfTenant)
	return true
}

// wait says that an owner has some of a tenant wait for their turns, or none any more.
func (k *keeping) wait(tenant string, queues int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tenant(tenant).queues += queues
}

// reserve is when an owner with whom some of a tenant wait may put the next one into the store. Owners that reserve in
// turns have equal parts, and what one does not use is not made up for: all of it together would be a burst.
func (k *keeping) reserve(tenant string, now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.tenant(tenant)
	t.spent = later(t.spent, now).Add(time.Second / keepsOfTenant)
	return t.spent
}

// owe counts what is neither made nor kept, and mayOwe reports whether there may be more of it.
func (k *keeping) owe(tenant string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tenant(tenant).owed += n
}

func (k *keeping) mayOwe(tenant string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.of[tenant]
	return t == nil || t.owed < owedOfTenant
}

// forget forgets tenants of whom nothing is left to know.
func (k *keeping) forget(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, t := range k.of {
		if t.queues == 0 && t.owed == 0 && now.Sub(t.spent) >= time.Second {
			delete(k.of, name)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
