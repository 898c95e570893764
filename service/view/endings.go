package view

import (
	"hash/fnv"
	"hash/maphash"
	"slices"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Reasons are kept for 10 to 11 minutes, within the bounds below. They explain a 410; the server
// decides nothing by them.
const (
	minutesKept = 10        // whole minutes, besides the one in which the entry ended
	maxEnds     = 4_000_000 // in all: 190 MB at most
	tenantsPart = 4         // a tenant has at most one part in so many
	chunkLength = 512       // ends that are dropped together
	maxRevoked  = 10_000    // ends with an operator's reason: 10 MB at most
)

// endings keeps why entries ended, in up to 48 bytes each, without pointers that the garbage
// collector would follow. It drops ends in chunks: when they are too old, when their tenant has
// too many, or when there are too many in all. In the last case it drops those of the tenant with
// most. It is not safe for concurrent use.
type endings struct {
	most     int // bound of all
	ofTenant int // bound of one tenant
	began    time.Time
	seed     maphash.Seed
	accounts accounts
	byID     map[endKey]end
	list     uint8             // counts the lists of the store; never 0
	reasons  []lock.Reason     // the known reasons, which ends refer to by index
	revoked  map[endKey]string // operators' reasons of ends, up to maxRevoked
	chunks   []*chunk          // of all tenants, the oldest first
	shares   shares
}

// endKey is a hash of an entry's id, unique enough for 11 minutes.
type endKey uint64

type end struct {
	minute uint32 // since the start of endings
	tenant uint16 // a hash of its name; 0 if unknown
	reason uint8
	after  uint8 // the list after which the view saw it; 0 if it comes from the store's record
}

// tenantHash distinguishes most tenants in 16 bits.
func tenantHash(tenant string) uint16 {
	if tenant == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant)) // never fails
	return uint16(h.Sum32()>>16) | 1
}

// chunk holds ends of one tenant in one minute.
type chunk struct {
	of     *account
	minute uint32
	keys   []endKey // nil once they are dropped
}

func newEndings(all accounts, most int) endings {
	return endings{
		most: most, ofTenant: most / tenantsPart, began: time.Now(), seed: maphash.MakeSeed(), list: 1,
		accounts: all, byID: map[endKey]end{}, revoked: map[endKey]string{},
		reasons: []lock.Reason{lock.Unknown},
	}
}

func (e *endings) keyOf(id lock.ID) endKey { return endKey(maphash.String(e.seed, string(id))) }

func (e *endings) minuteOf(now time.Time) uint32 {
	return uint32(max(0, now.Sub(e.began)) / time.Minute)
}

// record keeps why an entry of the tenant ended; "" is an unknown tenant. The latest end counts,
// because an idempotency key, and so an id, can be used again.
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

// explain keeps an operator's reason of a known end.
func (e *endings) explain(id lock.ID, note *lock.Note) {
	if note == nil || len(e.revoked) >= maxRevoked {
		return
	}
	if key := e.keyOf(id); e.byID[key] != (end{}) {
		e.revoked[key] = note.Reason
	}
}

// listed marks that the store was listed again: its ends are later than those seen before.
func (e *endings) listed() {
	if e.list++; e.list == 0 {
		e.list = 1
	}
}

// recall keeps an end from before the list, unless the view has seen one since. An id can have
// ended before the gap and, if its key was used again, a second time within it.
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

// reason returns why the entry ended, or "" if no end is known.
func (e *endings) reason(id lock.ID, now time.Time) lock.Reason {
	known, ok := e.byID[e.keyOf(id)]
	if !ok || e.over(known.minute, e.minuteOf(now)) {
		return ""
	}
	return e.reasons[known.reason]
}

// reasonOf returns why an entry ended, or "" if that is unknown or the entry is another tenant's.
func (e *endings) reasonOf(tenant string, id lock.ID, now time.Time) lock.Reason {
	if e.byID[e.keyOf(id)].tenant != tenantHash(tenant) {
		return ""
	}
	return e.reason(id, now)
}

func (e *endings) over(minute, now uint32) bool { return now > minute+minutesKept }

// number returns the index of a reason: 0, for unknown, beyond 100 reasons.
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

// sweep drops some old ends, more than are added meanwhile.
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
