package figures

import (
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
)

const (
	maxSigns   = 10     // kept signs of one lock
	maxRenewed = 50_000 // entries with known renewals, up to twice as many: 10 MB
	maxSets    = 1000   // the same for the locks of expired sets: 14 MB
)

// SignKind is a way in which a lease proved too short.
type SignKind string

// The kinds of signs.
const (
	RenewedTooLate  SignKind = "renewed_after_expiry"
	ReleasedTooLate SignKind = "released_after_expiry"
	RenewedLate     SignKind = "renewed_late" // more than two thirds of the lease had passed
)

// Sign shows that a lease was too short for its holder, or nearly.
type Sign struct {
	Kind   SignKind
	Entry  lock.ID
	Number uint64
	Holder string // "" if it is no longer known
	At     time.Time
	After  time.Duration // after the end of the lease, or since the last renewal; 0 if unknown
	TTL    time.Duration // of a late renewal
}

// signs are the signs of one lock.
type signs struct {
	last          []Sign
	tooLate, late uint64
}

// Sign keeps a sign of a lock. An entry counts as too late once only.
func (f *Figures) Sign(r lock.Ref, s Sign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(r, s.At).signs.add(s)
}

func (all *signs) add(s Sign) {
	late := s.Kind == RenewedLate
	again := slices.ContainsFunc(all.last, func(known Sign) bool {
		return known.Entry == s.Entry && known.Number == s.Number && known.Kind != RenewedLate
	})
	switch {
	case late:
		all.late++
	case again:
		return
	default:
		all.tooLate++
	}
	if all.last = append(all.last, s); len(all.last) > maxSigns {
		all.last = slices.Delete(all.last, 0, 1)
	}
}

// read returns the signs, the latest first, completed from the past of the lock.
func (all *signs) read(past []Past) (out []Sign, tooLate, late uint64) {
	for _, s := range slices.Backward(all.last) {
		s.complete(past)
		out = append(out, s)
	}
	return out, all.tooLate, all.late
}

func (s *Sign) complete(past []Past) {
	for _, p := range past {
		if p.Entry != s.Entry || p.Number != s.Number {
			continue
		}
		s.Holder = p.Holder
		if p.Kind == lock.EventExpired && s.Kind != RenewedLate {
			s.After = max(0, s.At.Sub(p.At))
		}
	}
}

// Renewed notes when this replica renewed an entry, and returns the time of its previous renewal.
func (f *Figures) Renewed(id lock.ID, at time.Time) (last time.Time) {
	f.renewing.Lock()
	defer f.renewing.Unlock()
	last = f.renewed.get(id)
	f.renewed.put(id, at)
	return last
}

// expiredSet holds the locks of an expired set: its token does not name them.
type expiredSet struct {
	number uint64
	names  []string
}

// keepSet copies the names, because they share memory with the whole stored entry.
func (f *Figures) keepSet(e *lock.Entry) {
	set := expiredSet{number: e.Number}
	for _, c := range e.Claims {
		set.names = append(set.names, strings.Clone(c.Name))
	}
	f.sets.put(lock.ID(strings.Clone(string(e.ID))), set)
}

// SetOf returns the locks of an expired set, or none if they are no longer known.
func (f *Figures) SetOf(id lock.ID, number uint64) []string {
	f.lock()
	defer f.mu.Unlock()
	if set := f.sets.get(id); set.number == number {
		return set.names
	}
	return nil
}

// recent keeps the latest values: at least most of them, and at most twice as many.
type recent[K comparable, V any] struct {
	most         int
	newer, older map[K]V
}

func (r *recent[K, V]) get(key K) V {
	if v, ok := r.newer[key]; ok {
		return v
	}
	return r.older[key]
}

func (r *recent[K, V]) put(key K, v V) {
	if r.newer == nil || len(r.newer) >= r.most {
		r.newer, r.older = map[K]V{}, r.newer
	}
	r.newer[key] = v
}
