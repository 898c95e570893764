package etcd

import (
	"maps"
	"time"
)

const (
	// turnsApart is between two entries of a tenant that are over at the same time and removed one after the other.
	turnsApart = 2 * time.Millisecond

	// turnsWithin is for how long an entry that is over waits for its turn at most.
	turnsWithin = time.Second
)

// turns are when entries that are over are removed. A tenant that took a thousand at once has a thousand that are over at
// once, and what others write would wait behind their removals: so one follows the other.
type turns struct {
	last  map[string]time.Time // by tenant, those given out last
	swept time.Time
}

// next returns a tenant's next turn: now, unless others have been given turns just before. When all of turnsWithin
// is given out, it is given out once more.
func (t *turns) next(tenant string, now time.Time) time.Time {
	t.sweep(now)
	at := t.last[tenant].Add(turnsApart)
	if at.Before(now) || at.Sub(now) >= turnsWithin {
		at = now
	}
	t.last[tenant] = at
	return at
}

// sweep forgets tenants whose turns are all over.
func (t *turns) sweep(now time.Time) {
	if now.Sub(t.swept) < turnsWithin {
		return
	}
	t.swept = now
	maps.DeleteFunc(t.last, func(_ string, at time.Time) bool { return now.Sub(at) > turnsApart })
}
