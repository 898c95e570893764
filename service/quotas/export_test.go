package quotas

import (
	"fmt"

	"github.com/fencepost/fencepost/lock/quota"
)

// MaxPaced is how many tenants are remembered.
const MaxPaced = maxPaced

// Know has the book be one that has read limits of so many tenants.
func (b *Book) Know(tenants int) {
	set := make(map[string]*quota.Limits, tenants)
	for i := range tenants {
		set[fmt.Sprint("known", i)] = b.Defaults
	}
	b.set.Store(&set)
}

// Remembered counts the tenants whose pace is known.
func (b *Book) Remembered() int {
	b.rates.mu.Lock()
	defer b.rates.mu.Unlock()
	return len(b.rates.tenants)
}
