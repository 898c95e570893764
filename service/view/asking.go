package view

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// askingTime is for how long an ask counts of which it is not known what became of it: longer than
// it takes to write one.
const askingTime = time.Minute

// asking are those who were let ask by this replica and are not in the view yet. They count for
// the bounds, so that of many who come at once no more are let than there is room for.
type asking struct {
	of       map[lock.ID]letAsk
	byLock   map[lock.Ref]int
	byTenant map[string]int
}

type letAsk struct {
	entry *lock.Entry
	until time.Time
}

func newAsking() asking {
	return asking{of: map[lock.ID]letAsk{}, byLock: map[lock.Ref]int{}, byTenant: map[string]int{}}
}

func (a *asking) add(e *lock.Entry, until time.Time) {
	a.drop(e.ID)
	a.of[e.ID] = letAsk{e, until}
	a.count(e, 1)
}

func (a *asking) drop(id lock.ID) {
	if let, ok := a.of[id]; ok {
		delete(a.of, id)
		a.count(let.entry, -1)
	}
}

func (a *asking) count(e *lock.Entry, n int) {
	if a.byTenant[e.Tenant] += n; a.byTenant[e.Tenant] == 0 {
		delete(a.byTenant, e.Tenant)
	}
	for _, c := range e.Claims {
		ref := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		if a.byLock[ref] += n; a.byLock[ref] == 0 {
			delete(a.byLock, ref)
		}
	}
}

// expire forgets those of whom nothing was heard for long.
func (a *asking) expire(now time.Time) {
	for id, let := range a.of {
		if now.After(let.until) {
			a.drop(id)
		}
	}
}

// LetAsk lets an entry ask those who hold to finish, when it joins or now, and counts it from here
// on until the view has it. It returns why the entry must not ask: too many of its tenant do, or of
// those who want one of its locks. At one replica that is exact; several that are asked at one
// moment may let as many each. An entry that is likely to hold counts too, as many may come at once.
func (v *View) LetAsk(e *lock.Entry) error {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, asks := v.asks.of[e.ID]; asks {
		return nil
	}
	free := v.table.Admits(e.Tenant, e.Claims)
	err := v.roomToAsk(e, free)
	if err != nil {
		v.asking.expire(now)
		err = v.roomToAsk(e, free)
	}
	if err != nil {
		return err
	}
	v.asking.add(e, now.Add(askingTime))
	return nil
}

// DropAsk says that an entry does not ask after all: nothing was written.
func (v *View) DropAsk(id lock.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asking.drop(id)
}

// roomToAsk returns why an entry must not ask, which is likely to wait unless free is set.
func (v *View) roomToAsk(e *lock.Entry, free bool) error {
	full := func(format string, args ...any) error {
		return &lock.Error{Code: lock.QuotaExceeded, RetryAfter: time.Second, Detail: fmt.Sprintf(format, args...)}
	}
	if _, let := v.asking.of[e.ID]; let {
		return nil // it counts already
	}
	if a := v.accounts[e.Tenant]; !free && a != nil && a.asks+v.asking.byTenant[e.Tenant] >= MaxAsksPerTenant {
		return full("%d entries of the tenant ask for a release already", MaxAsksPerTenant)
	}
	for _, c := range e.Claims {
		ref := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		if len(v.asks.byLock[ref])+v.asking.byLock[ref] >= MaxAsksPerLock {
			return full("%d entries ask for a release of %s already", MaxAsksPerLock, c.Name)
		}
	}
	return nil
}
