package figures

import (
	"time"

	"github.com/fencepost/fencepost/lock"
)

// maxSeries bounds the tenants with series, the most recent ones. Those of one take up to 80 KB.
const maxSeries = 200

// tenants holds the series of each tenant, and those of all tenants without the replicas' own.
type tenants struct {
	all    *spans
	levels map[string]level // the non-zero ones
	total  level
	of     map[string]*spans
}

// spans are recent minutes and recent hours.
type spans [2]Series

func newSpans() *spans { return &spans{1: {step: HourStep}} }

func (x *spans) level(now time.Time, is level) {
	for i := range x {
		x[i].Level(now, is.waiting, is.holding)
	}
}

// level is how many entries wait, and how many claims hold.
type level struct{ waiting, holding int }

func newTenants() tenants {
	return tenants{all: newSpans(), levels: map[string]level{}, of: map[string]*spans{}}
}

// happened counts an event in the series of its tenant and in that of all.
func (t *tenants) happened(what *lock.Event, waited time.Duration) {
	if what.Entry.Tenant == lock.OwnTenant {
		return
	}
	own := t.series(what.Entry.Tenant)
	for _, s := range [...]*Series{&own[0], &own[1], &t.all[0], &t.all[1]} {
		switch {
		case what.Kind == lock.EventAcquired:
			s.Granted(what.At, waited)
		case what.Held && what.Reason != lock.Withdrawn:
			s.Ended(what.At, what.Reason, what.Lasted)
		}
	}
}

func (t *tenants) series(tenant string) *spans {
	if s := t.of[tenant]; s != nil {
		return s
	}
	if len(t.of) >= maxSeries {
		t.forget()
	}
	s := newSpans()
	t.of[tenant] = s
	return s
}

// forget drops the series of the tenant that was idle for longest.
func (t *tenants) forget() {
	oldest := ""
	for tenant, s := range t.of {
		if oldest == "" || s[0].last < t.of[oldest][0].last {
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
	t.series(tenant).level(now, is)
	t.all.level(now, t.total)
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
	t.all.level(now, t.total)
	for tenant, s := range t.of {
		s.level(now, t.levels[tenant])
	}
}

// Series returns what a tenant's series with the step keeps, or with "" that of all tenants except
// the replicas' own. It is empty if nothing happened. Another step than HourStep is Step.
func (f *Figures) Series(tenant string, step time.Duration, now time.Time) Summary {
	f.lock()
	of := f.tenants.all
	if tenant != "" {
		of = f.tenants.of[tenant]
	}
	if of == nil {
		f.mu.Unlock()
		return Summary{}
	}
	s := &of[0]
	if step == HourStep {
		s = &of[1]
	}
	s = s.copy()
	f.mu.Unlock()
	return s.Read(now)
}
