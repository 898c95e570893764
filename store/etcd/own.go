package etcd

import (
	"sync"

	"github.com/fencepost/fencepost/lock"
)

// maxOwnWrites bounds what is remembered of writes that no feed told of.
const maxOwnWrites = 4096

// ownWrites are the entries that this replica has just written under fresh ids, so
// that its feed need not decode them.
type ownWrites struct {
	mu    sync.Mutex
	byKey map[string]*lock.Entry
}

func (o *ownWrites) add(key string, e *lock.Entry) {
	written := *e
	written.Lingers = false
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byKey == nil || len(o.byKey) >= maxOwnWrites {
		o.byKey = map[string]*lock.Entry{}
	}
	o.byKey[key] = &written
}

// take returns the entry whose first key it is, once, without its number and
// handle; nil if it is not one of ours.
func (o *ownWrites) take(key []byte) *lock.Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.byKey[string(key)]
	if e != nil {
		delete(o.byKey, string(key))
	}
	return e
}
