package figures

import (
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
)

// maxLocks bounds the locks with figures, by default.
const maxLocks = 20_000

// Figures are the figures of one replica. If there are too many locks, the tenant with most loses
// its least recently used one. Figures is safe for concurrent use. Grants need the lock of a view,
// so a view only leaves notes. [Figures.Run] counts them, or the next read.
type Figures struct {
	Contradicts func(Contradiction) // set before use, must not block; nil ignores contradictions

	notes   notes
	mu      sync.Mutex // guards what follows
	most    int        // bounds the locks
	locks   map[lock.Ref]*usage
	byUse   tenantLists[*usage]
	past    int       // how many events of all locks are kept
	cut     time.Time // when a lock with recent waiters was dropped
	tenants tenants
	orders  orders
	sets    recent[lock.ID, expiredSet]

	renewing sync.Mutex
	renewed  recent[lock.ID, time.Time]
}

// usage is what is kept of one lock.
type usage struct {
	ref          lock.Ref
	listed       *listed[*usage]
	acquisitions uint64
	expirations  uint64
	newest       uint64
	use          Use
	heat         Heat
	waits, holds samples
	past         pasts
	signs        signs
}

// New returns figures of at most so many locks, or of 20 000 if most is 0.
func New(most int) *Figures {
	if most == 0 {
		most = maxLocks
	}
	return &Figures{
		most: most, locks: map[lock.Ref]*usage{}, byUse: newTenantLists[*usage](), tenants: newTenants(),
		renewed: recent[lock.ID, time.Time]{most: maxRenewed},
		orders:  orders{graph: order.NewGraph(), limiters: map[string]*limiter{}},
		sets:    recent[lock.ID, expiredSet]{most: maxSets},
		notes:   notes{ready: make(chan struct{}, 1)},
	}
}

// happened counts and keeps an event.
func (f *Figures) happened(n *note) {
	what, e := &n.Event, n.Entry
	if what.Kind == lock.EventExpired && e.Set {
		f.keepSet(e)
	}
	f.tenants.happened(what, n.waited)
	for i, c := range e.Claims {
		r := lock.Ref{Tenant: e.Tenant, Name: c.Name}
		for f.past >= maxPast {
			f.forget(what.At)
		}
		u := f.of(r, what.At)
		f.past += u.past.add(what)
		switch {
		case what.Kind == lock.EventAcquired:
			u.granted(what, n.waited)
		case what.Held:
			u.ended(what, n.free&(1<<i) != 0)
		}
	}
}

func (u *usage) granted(what *lock.Event, waited time.Duration) {
	u.use.take(what.At)
	u.acquisitions++
	u.newest = max(u.newest, what.Entry.Number)
	u.waits.add(waited)
}

func (u *usage) ended(what *lock.Event, free bool) {
	if free {
		u.use.free(what.At)
	}
	if what.Reason == lock.Expired {
		u.expirations++
	}
	if what.Reason != lock.Withdrawn {
		u.holds.add(what.Lasted)
	}
}

// waiting records how many entries wait for a lock from now on.
func (f *Figures) waiting(r lock.Ref, n int, now time.Time) {
	if f.locks[r] != nil || n > 0 {
		f.of(r, now).heat.Waiting(now, n)
	}
}

// Relist handles a table that was built from a list. levels calls its argument for each tenant
// with entries. queue returns how many entries hold a lock and wait for it.
func (f *Figures) Relist(
	levels func(set func(tenant string, waiting, holding int)),
	queue func(lock.Ref) (holding, waiting int),
	now time.Time,
) {
	f.lock()
	defer f.mu.Unlock()
	f.tenants.relist(levels, now)
	for r, u := range f.locks {
		holding, waiting := queue(r)
		if holding == 0 {
			u.use.free(now)
		}
		u.heat.Waiting(now, waiting)
	}
}

// of returns the record of a lock that is used now.
func (f *Figures) of(r lock.Ref, now time.Time) *usage {
	if u := f.locks[r]; u != nil {
		f.byUse.touch(u.listed)
		return u
	}
	if len(f.locks) >= f.most {
		f.forget(now)
	}
	u := &usage{ref: r}
	u.listed = f.byUse.add(r.Tenant, u)
	f.locks[r] = u
	return u
}

// forget drops the least recently used lock of the tenant with most.
func (f *Figures) forget(now time.Time) {
	u := f.byUse.last()
	f.byUse.remove(u.listed)
	delete(f.locks, u.ref)
	f.past -= u.past.count
	if !u.heat.Idle(now) {
		f.cut = now
	}
}

// Lock is how a lock was used.
type Lock struct {
	Acquisitions uint64
	Expirations  uint64
	Newest       uint64 // the newest granted fence
	Wait, Hold   Percentiles
}

// UsualHold returns the hold time that one hold in a hundred exceeds, 0 with too few holds.
func (l Lock) UsualHold() time.Duration {
	const enough = 10
	if l.Acquisitions < enough {
		return 0
	}
	return l.Hold.P99
}

// shortHold is the hold time up to which a holder counts as working.
const shortHold = 5 * time.Second

// Hangs reports whether a holder keeps a lock for much longer than is usual there. With too few
// holds to know, it reports whether the holder has kept it for most of the longest wait: in a
// queue that moves, holders change meanwhile.
func (f *Figures) Hangs(r lock.Ref, held, longestWait time.Duration) bool {
	if held < shortHold { // most holds: the figures are not read
		return false
	}
	if usual := f.Of(r).UsualHold(); usual > 0 {
		return held > 2*usual
	}
	return held > longestWait/2
}

// Of returns how a lock was used.
func (f *Figures) Of(r lock.Ref) Lock {
	f.lock()
	defer f.mu.Unlock()
	u := f.locks[r]
	if u == nil {
		return Lock{}
	}
	return u.read()
}

func (u *usage) read() Lock {
	return Lock{
		Acquisitions: u.acquisitions, Expirations: u.expirations, Newest: u.newest,
		Wait: u.waits.percentiles(), Hold: u.holds.percentiles(),
	}
}

// Recent returns the newest granted fence of a lock, or 0 if it is unknown, and how long the lock
// was held in the last minutes. since is the start of the present hold, zero if the lock is free.
// It counts no notes first.
func (f *Figures) Recent(r lock.Ref, since time.Time) (newest uint64, use Use) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.locks[r]; u != nil {
		newest, use = u.newest, u.use
	}
	if use.since.IsZero() && !since.IsZero() { // from a list, or the figures were dropped
		use = Use{began: since, since: since}
	}
	return newest, use
}

// Distribution returns the distributions of the latest waits and holds of a lock.
func (f *Figures) Distribution(r lock.Ref) (waits, holds []Bin) {
	f.lock()
	u := f.locks[r]
	if u == nil {
		f.mu.Unlock()
		return nil, nil
	}
	w, h := slices.Clone(u.waits.last), slices.Clone(u.holds.last)
	f.mu.Unlock()
	return bins(w), bins(h)
}

// History is what is kept of a lock.
type History struct {
	Past     []Past // the newest first, at most 50
	Figures  Lock
	Signs    []Sign // of leases that were too short, the latest first
	TooLate  uint64 // entries that were renewed or released after they had expired
	Late     uint64 // renewals after more than two thirds of the lease
	Heat     []float64
	HeatFrom time.Time // start of the first step of Heat; zero if no entry waited recently
}

// History returns what is kept of a lock at an instant.
func (f *Figures) History(r lock.Ref, now time.Time) (out History) {
	f.lock()
	defer f.mu.Unlock()
	u := f.locks[r]
	if u == nil {
		return out
	}
	out = History{Past: u.past.read(), Figures: u.read()}
	out.Signs, out.TooLate, out.Late = u.signs.read(out.Past)
	if !u.heat.Idle(now) {
		out.Heat, out.HeatFrom = u.heat.Read(now), HeatFrom(now)
	}
	return out
}

// Ended returns the end of the hold with a number, if it is among the kept events of the lock.
func (f *Figures) Ended(r lock.Ref, number uint64) (end Past, known bool) {
	f.lock()
	defer f.mu.Unlock()
	u := f.locks[r]
	if u == nil {
		return end, false
	}
	for _, p := range u.past.read() {
		if p.Number == number && p.Held && p.Reason != "" {
			return p, true
		}
	}
	return end, false
}

// LockHeat is the heat of a lock.
type LockHeat struct {
	lock.Ref
	Heat
}

// Heats returns the heat of all locks for which entries waited recently; cut reports whether
// some are missing.
func (f *Figures) Heats(now time.Time) (heats []LockHeat, cut bool) {
	f.lock()
	defer f.mu.Unlock()
	for r, u := range f.locks {
		if !u.heat.Idle(now) {
			heats = append(heats, LockHeat{r, u.heat})
		}
	}
	return heats, now.Sub(f.cut) < HeatSteps*HeatStep
}
