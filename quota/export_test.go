package quota

import (
	"fmt"
)

// MaxBuckets is how many tenants have buckets.
const MaxBuckets = maxBuckets

// Know has the book be one that has read limits of so many tenants.
func (b *Book) Know(tenants int) {
	set := make(map[string]*Limits, tenants)
	for i := range tenants {
		set[fmt.Sprint("known", i)] = b.Defaults
	}
	b.set.Store(&set)
}

// Remembered counts the tenants whose pace is known.
func (b *Book) Remembered() int {
	b.buckets.mu.Lock()
	defer b.buckets.mu.Unlock()
	return len(b.buckets.tenants)
}
