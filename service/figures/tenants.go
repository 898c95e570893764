package figures

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// maxSeries bounds the tenants with series, the most recent ones. One takes up to 40 KB.
const maxSeries = 200

// tenants holds a series for each tenant, and one for all tenants without the replicas' own.
type tenants struct {
	all    Series
	levels map[string]level // the non-zero ones
	total  level
	of     map[string]*Series
}

// level is how many entries wait, and how many claims hold.
type level struct{ waiting, holding int }

func newTenants() tenants {
	return tenants{levels: map[string]level{}, of: map[string]*Series{}}
}

// happened counts an event in the series of its tenant and in that of all.
func (t *tenants) happened(what *lock.Event, waited time.Duration) {
	if what.Entry.Tenant == lock.OwnTenant {
		return
	}
	for _, s := range [...]*Series{t.series(what.Entry.Tenant), &t.all} {
		switch {
		case what.Kind == lock.EventAcquired:
			s.Granted(what.At, waited)
		case what.Held && what.Reason != lock.Withdrawn:
			s.Ended(what.At, what.Reason, what.Lasted)
		}
	}
}

func (t *tenants) series(tenant string) *Series {
	if s := t.of[tenant]; s != nil {
		return s
	}
	if len(t.of) >= maxSeries {
		t.forget()
	}
	s := &Series{}
	t.of[tenant] = s
	return s
}

// forget drops the series of the tenant that was idle for longest.
func (t *tenants) forget() {
	oldest := ""
	for tenant, s := range t.of {
		if oldest == "" || s.last < t.of[oldest].last {
			oldest = tenant
		}
	}
	delete(t.of, oldest)
}

func (t *tenants) level(tenant string, is level, now time.Time) {
	if tenant == lock.OwnTenant || t.levels[tenant] == is {
		return
	}
	t.set(tenant, is)
	t.series(tenant).Level(now, is.waiting, is.holding)
	t.all.Level(now, t.total.waiting, t.total.holding)
}

func (t *tenants) set(tenant string, is level) {
	was := t.levels[tenant]
	t.total.waiting += is.waiting - was.waiting
	t.total.holding += is.holding - was.holding
	if t.levels[tenant] = is; is == (level{}) {
		delete(t.levels, tenant)
	}
}

func (t *tenants) relist(
	levels func(set func(tenant string, waiting, holding int)),
	now time.Time,
) {
	t.levels, t.total = map[string]level{}, level{}
	levels(func(tenant string, waiting, holding int) {
		if tenant != lock.OwnTenant {
			t.set(tenant, level{waiting, holding})
		}
	})
	t.all.Level(now, t.total.waiting, t.total.holding)
	for tenant, s := range t.of {
		s.Level(now, t.levels[tenant].waiting, t.levels[tenant].holding)
	}
}

// Series returns a tenant's last quarter of an hour, or with "" that of all tenants except the
// replicas' own. It is empty if nothing happened.
func (f *Figures) Series(tenant string, now time.Time) Summary {
	f.mu.Lock()
	s := &f.tenants.all
	if tenant != "" {
		s = f.tenants.of[tenant]
	}
	if s != nil {
		s = s.copy()
	}
	f.mu.Unlock()
	if s == nil {
		return Summary{}
	}
	return s.Read(now)
}
