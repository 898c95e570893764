package view

import (
	"hash/fnv"
	"hash/maphash"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Reasons are kept for at least 10 minutes and at most 11, as far as there is room.
// They serve to explain a 410; nothing is decided by them.
const (
	minutesKept = 10        // whole ones, beside the one in which the entry ended
	maxEnds     = 4_000_000 // in all, some 190 MB at most
	tenantsPart = 4         // of how many one is a tenant's at most
	chunkLength = 512       // that are forgotten together
	maxRevoked  = 10_000    // ends with the reason of an operator, some 10 MB at most
)

// endings remembers why entries ended, in up to 48 bytes each and without pointers
// that a garbage collection would have to follow. Ends are forgotten in chunks: when
// they are too old, when their tenant has too many, or when all together have too
// many, those of the tenant that has most. It is not safe for concurrent use.
type endings struct {
	most     int // in all
	ofTenant int // and of one tenant, at most
	began    time.Time
	seed     maphash.Seed
	accounts accounts
	byID     map[endKey]end
	list     uint8             // counts the lists of the store, never 0
	reasons  []lock.Reason     // those seen, as ends name them
	revoked  map[endKey]string // what operators said of ends, as far as maxRevoked goes
	chunks   []*chunk          // of all tenants, the oldest first
	shares   shares
}

// endKey is a hash of an entry's id: no two ids within 11 minutes have the same one.
type endKey uint64

type end struct {
	minute uint32 // since endings began
	tenant uint16 // a hash of its name; 0 if it is not known
	reason uint8
	after  uint8 // the list after which it was seen; 0 if it is known from what the store remembers
}

// tenantHash tells most tenants apart in the room that there is.
func tenantHash(tenant string) uint16 {
	if tenant == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant)) // never fails
	return uint16(h.Sum32()>>16) | 1
}

// chunk is some ends of one tenant in one minute.
type chunk struct {
	of     *account
	minute uint32
	keys   []endKey // nil if they are forgotten
}

func newEndings(all accounts, most int) endings {
	return endings{
		most:     most,
		ofTenant: most / tenantsPart,
		began:    time.Now(),
		seed:     maphash.MakeSeed(),
		list:     1,
		accounts: all,
		byID:     map[endKey]end{},
		revoked:  map[endKey]string{},
		reasons:  []lock.Reason{lock.Unknown},
	}
}

func (e *endings) keyOf(id lock.ID) endKey { return endKey(maphash.String(e.seed, string(id))) }

func (e *endings) minuteOf(now time.Time) uint32 {
	return uint32(max(0, now.Sub(e.began)) / time.Minute)
}

// record remembers why an entry of the tenant ended, "" if the tenant is not known.
// The latest counts: when an idempotency key is forgotten, its id can be used again.
func (e *endings) record(tenant string, id lock.ID, why lock.Reason, now time.Time) {
	e.keep(tenant, id, why, now, e.list)
}

func (e *endings) keep(tenant string, id lock.ID, why lock.Reason, now time.Time, after uint8) {
	if why == lock.Withdrawn {
		return
	}
	minute, a, key := e.minuteOf(now), e.accounts.of(tenant), e.keyOf(id)
	delete(e.revoked, key) // of an earlier entry with the id
	e.byID[key] = end{minute, tenantHash(tenant), e.number(why), after}
	if last := len(a.chunks) - 1; last >= 0 && a.chunks[last].minute == minute &&
		len(a.chunks[last].keys) < chunkLength {
		a.chunks[last].keys = append(a.chunks[last].keys, key)
	} else {
		c := &chunk{of: a, minute: minute, keys: []endKey{key}}
		a.chunks, e.chunks = append(a.chunks, c), append(e.chunks, c)
	}
	e.shares.change(&a.ends, 1)
	switch {
	case tenant != "" && a.ends.size > e.ofTenant:
		e.forget(a)
	case e.shares.total > e.most:
		e.forget(e.shares.largest())
	default:
		e.sweep(minute)
	}
}

// explain keeps what an operator said of an end that is known.
func (e *endings) explain(id lock.ID, note *lock.Note) {
	if note == nil || len(e.revoked) >= maxRevoked {
		return
	}
	if key := e.keyOf(id); e.byID[key] != (end{}) {
		e.revoked[key] = note.Reason
	}
}

// listed is for a store that was listed again: the ends in it are later than what was seen before.
func (e *endings) listed() {
	if e.list++; e.list == 0 {
		e.list = 1
	}
}

// recall remembers an end from before the list, unless one was seen since. An id can have
// ended before the gap and, with a key that was used again, in it for another reason.
func (e *endings) recall(tenant string, id lock.ID, why lock.Reason, now time.Time) {
	known := e.reason(id, now)
	if known == "" || known != why && e.byID[e.keyOf(id)].after != e.list {
		e.keep(tenant, id, why, now, 0)
	}
}

// guess keeps an end that the store has no record of, unless its reason is known.
func (e *endings) guess(tenant string, id lock.ID, why lock.Reason, now time.Time) {
	if e.reason(id, now) == "" {
		e.keep(tenant, id, why, now, 0)
	}
}

// reason returns why the entry ended, or "" if it is not known to have.
func (e *endings) reason(id lock.ID, now time.Time) lock.Reason {
	known, ok := e.byID[e.keyOf(id)]
	if !ok || e.over(known.minute, e.minuteOf(now)) {
		return ""
	}
	return e.reasons[known.reason]
}

// reasonOf returns why an entry ended, or "" if that is not known or the entry is not the tenant's.
func (e *endings) reasonOf(tenant string, id lock.ID, now time.Time) lock.Reason {
	if e.byID[e.keyOf(id)].tenant != tenantHash(tenant) {
		return ""
	}
	return e.reason(id, now)
}

func (e *endings) over(minute, now uint32) bool { return now > minute+minutesKept }

// number returns the number by which ends name a reason: 0, for unknown, beyond 100 reasons.
func (e *endings) number(why lock.Reason) uint8 {
	if i := slices.Index(e.reasons, why); i >= 0 {
		return uint8(i)
	}
	if len(e.reasons) == 100 {
		return 0
	}
	e.reasons = append(e.reasons, why)
	return uint8(len(e.reasons) - 1)
}

// sweep forgets a little of what is too old: more than is added meanwhile.
func (e *endings) sweep(now uint32) {
	for range 2 {
		for len(e.chunks) > 0 && e.chunks[0].keys == nil {
			e.chunks[0] = nil
			e.chunks = e.chunks[1:]
		}
		if len(e.chunks) == 0 || !e.over(e.chunks[0].minute, now) {
			return
		}
		e.forget(e.chunks[0].of)
	}
}

// forget drops the oldest chunk of an account.
func (e *endings) forget(a *account) {
	c := a.chunks[0]
	a.chunks[0] = nil
	a.chunks = a.chunks[1:]
	for _, key := range c.keys {
		if e.byID[key].minute == c.minute {
			delete(e.byID, key)
			delete(e.revoked, key)
		}
	}
	e.shares.change(&a.ends, -len(c.keys))
	c.keys = nil
	e.accounts.close(a)
}
