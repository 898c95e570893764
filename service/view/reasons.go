package view

import (
	"cmp"
	"context"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Reasons holds why entries ended.
type Reasons struct {
	base
	ended       endings
	unexplained map[lock.ID]string // tenants of entries that left while the feed was down
	recalled    chan struct{}      // closed when the reasons from before the list are known; or nil
}

func newReasons(shared base, all accounts) Reasons {
	most := cmp.Or(shared.Ends, maxEnds)
	return Reasons{base: shared, ended: newEndings(all, most), unexplained: map[lock.ID]string{}}
}

// EndOf returns why an entry of the tenant ended, or [lock.Unknown].
func (v *Reasons) EndOf(tenant string, id lock.ID) lock.Reason {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return cmp.Or(v.ended.reasonOf(tenant, id, time.Now()), lock.Unknown)
}

// RevokeReason returns the reason of the operator who revoked an entry, or "".
func (v *Reasons) RevokeReason(id lock.ID) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.ended.revoked[v.ended.keyOf(id)]
}

// AwaitReasons waits until the reasons from before the last list are known.
func (v *Reasons) AwaitReasons(ctx context.Context) {
	v.mu.RLock()
	recalled := v.recalled
	v.mu.RUnlock()
	if recalled == nil {
		return
	}
	select {
	case <-recalled:
	case <-ctx.Done():
	}
}
