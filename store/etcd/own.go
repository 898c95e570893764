package etcd

import (
	"sync"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// maxOwnWrites bounds the kept entries, and ends, of writes that no feed has reported.
const maxOwnWrites = 4096

// ownWrites holds the entries that this replica has just written under fresh ids, and its records
// of ends, so that its feed need not decode them.
type ownWrites struct {
	mu      sync.Mutex
	byKey   map[string]*lock.Entry
	records map[string][]store.End // without the entries' data
	ends    int                    // of all records
}

func (o *ownWrites) add(key string, e *lock.Entry) {
	written := *e
	written.Lingers, written.Admitted = false, 0
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byKey == nil || len(o.byKey) >= maxOwnWrites {
		o.byKey = map[string]*lock.Entry{}
	}
	o.byKey[key] = &written
}

// take returns the entry whose home has that key, once, without its number and handle. It returns
// nil if the entry is not this replica's.
func (o *ownWrites) take(key []byte) *lock.Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.byKey[string(key)]
	if e != nil {
		delete(o.byKey, string(key))
	}
	return e
}

// record keeps the ends of the record at key, reduced to what the feed reads.
func (o *ownWrites) record(key []byte, ends []store.End) {
	for i := range ends {
		ends[i].Was = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ends += len(ends); o.records == nil || o.ends > maxOwnWrites {
		o.records, o.ends = map[string][]store.End{}, len(ends)
	}
	o.records[string(key)] = ends
}

// takeRecord returns the ends of the record at key, once; ok is false if the record is not this
// replica's.
func (o *ownWrites) takeRecord(key []byte) (ends []store.End, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ends, ok = o.records[string(key)]; ok {
		delete(o.records, string(key))
		o.ends -= len(ends)
	}
	return ends, ok
}
