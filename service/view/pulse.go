package view

import (
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/series"
)

const (
	// maxSeries is of how many tenants there are series: those where something happened
	// last. One takes up to 40 KB.
	maxSeries = 200

	// maxHeats is of how many locks it is known how many waited for them lately, in 0.3 KB each.
	maxHeats = 5000
)

// pulse is what happened in the last quarter of an hour, in steps: in all tenants but that of
// the replicas, and in each. It is not safe for concurrent use.
type pulse struct {
	all     *series.Series
	waiting int // in all
	holding int // claims, likewise
	tenants map[string]*series.Series
	heats   map[lock.Ref]*series.Heat
	full    time.Time // when there was no room for the heat of another lock
}

func newPulse() pulse {
	return pulse{all: &series.Series{}, tenants: map[string]*series.Series{}, heats: map[lock.Ref]*series.Heat{}}
}

// both returns the series of the tenant and of all, which do not count the replicas' own.
func (p *pulse) both(tenant string) (own, all *series.Series) {
	if tenant == lock.OwnTenant {
		own = &series.Series{}
		return own, own
	}
	if own = p.tenants[tenant]; own != nil {
		return own, p.all
	}
	if len(p.tenants) >= maxSeries {
		p.forget()
	}
	own = &series.Series{}
	p.tenants[tenant] = own
	return own, p.all
}

// forget drops the series of the tenant where nothing has happened for longest.
func (p *pulse) forget() {
	oldest := ""
	for tenant, s := range p.tenants {
		if oldest == "" || s.Last() < p.tenants[oldest].Last() {
			oldest = tenant
		}
	}
	delete(p.tenants, oldest)
}

func (p *pulse) granted(tenant string, waited time.Duration, now time.Time) {
	own, all := p.both(tenant)
	own.Granted(now, waited)
	all.Granted(now, waited)
}

// ended counts the end of a hold.
func (p *pulse) ended(tenant string, why lock.Reason, lasted time.Duration, now time.Time) {
	own, all := p.both(tenant)
	switch why {
	case lock.Withdrawn:
	case lock.Released:
		own.Released(now, lasted)
		all.Released(now, lasted)
	case lock.Expired:
		own.Expired(now, lasted)
		all.Expired(now, lasted)
	default:
		own.Ended(now, lasted)
		all.Ended(now, lasted)
	}
}

// level notes how many of an account wait and hold, of whom there were more or fewer before.
func (p *pulse) level(a *account, now time.Time) {
	before, is := a.counted, [2]int{a.waiting, a.holding}
	if a.counted = is; before == is || a.tenant == lock.OwnTenant {
		return
	}
	p.waiting += is[0] - before[0]
	p.holding += is[1] - before[1]
	own, all := p.both(a.tenant)
	own.Level(now, a.waiting, a.holding)
	all.Level(now, p.waiting, p.holding)
}

// heat notes how many wait for a lock.
func (p *pulse) heat(r lock.Ref, waiting int, now time.Time) {
	h := p.heats[r]
	if h == nil {
		if waiting == 0 || !p.room(now) {
			return
		}
		h = &series.Heat{}
		p.heats[r] = h
	}
	h.Waiting(now, waiting)
}

// room makes room for the heat of another lock, if it can. It looks for that every few
// seconds only.
func (p *pulse) room(now time.Time) bool {
	if len(p.heats) < maxHeats {
		return true
	}
	if now.Sub(p.full) < 10*time.Second {
		return false
	}
	p.full = now
	for r, h := range p.heats {
		if h.Idle(now) {
			delete(p.heats, r)
		}
	}
	return len(p.heats) < maxHeats
}

// relist counts anew who waits and holds, in a table that was built anew.
func (v *View) relist(now time.Time) {
	p := &v.pulse
	p.waiting, p.holding = 0, 0
	for tenant, a := range v.accounts {
		if a.counted = [2]int{a.waiting, a.holding}; tenant != lock.OwnTenant {
			p.waiting += a.waiting
			p.holding += a.holding
		}
	}
	p.all.Level(now, p.waiting, p.holding)
	for tenant, s := range p.tenants {
		waiting, holding := 0, 0
		if a := v.accounts[tenant]; a != nil {
			waiting, holding = a.waiting, a.holding
		}
		s.Level(now, waiting, holding)
	}
	for r, h := range p.heats {
		waiting := 0
		if q := v.table.Queue(r); q != nil {
			waiting = q.Len() - q.Holders()
		}
		h.Waiting(now, waiting)
	}
}

// Series returns what happened in a tenant, or with "" in all but that of the replicas, for the
// caller alone. It is empty if nothing did, or not for long.
func (v *View) Series(tenant string) *series.Series {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.pulse.all
	if tenant != "" {
		s = v.pulse.tenants[tenant]
	}
	if s == nil {
		return &series.Series{}
	}
	return s.Copy()
}

// Heat is how many waited for a lock lately.
type Heat struct {
	lock.Ref
	series.Heat
}

// Heats returns those of all locks that were waited for lately, as far as they are kept; full
// says that there was no room for some.
func (v *View) Heats(now time.Time) (heats []Heat, full bool) {
	heats = make([]Heat, 0, maxHeats)
	v.mu.RLock()
	defer v.mu.RUnlock()
	for r, h := range v.pulse.heats {
		heats = append(heats, Heat{r, *h})
	}
	return heats, now.Sub(v.pulse.full) < series.HeatSteps*series.HeatStep
}

// HeatOf returns how many waited for a lock lately, false if that is not kept.
func (v *View) HeatOf(r lock.Ref) (series.Heat, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	h := v.pulse.heats[r]
	if h == nil {
		return series.Heat{}, false
	}
	return *h, true
}
