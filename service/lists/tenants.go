package lists

import (
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

// Tenant counts a tenant's locks in use and in sight. An entry of several locks counts at each.
type Tenant struct {
	Name string
	Totals
}

// Tenants is a page of the tenants with locks in use, by name.
type Tenants struct {
	Tenants  []Tenant
	Next     string // the last name of the page if there are more
	All      int    // the number of tenants
	Revision uint64
	Now      time.Time
}

// Tenants counts the locks of at most most tenants, from the first one after a name.
func (l *Lists) Tenants(s Sight, after string, most int) *Tenants {
	out, totals := &Tenants{Now: l.now()}, map[string]*Totals{}
	of := func(tenant string) *Totals {
		t := totals[tenant]
		if t == nil {
			t = &Totals{}
			totals[tenant] = t
		}
		return t
	}
	out.Revision = l.source.EachRow(s.counted(), s.Tenant, func(row *view.Row) {
		if s.Sees(row.Ref) {
			of(row.Tenant).count(row)
		}
	})
	if s.May == nil {
		for _, tenant := range l.tenantNames(s) {
			if sums := l.source.Sums(tenant); sums.Locks > 0 {
				of(tenant).set(sums)
			}
		}
	}
	out.All = len(totals)
	for name, t := range totals {
		if name > after {
			out.Tenants = append(out.Tenants, Tenant{name, *t})
		}
	}
	slices.SortFunc(out.Tenants, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	if len(out.Tenants) > most {
		out.Tenants = out.Tenants[:most]
		out.Next = out.Tenants[most-1].Name
	}
	return out
}

func (l *Lists) tenantNames(s Sight) []string {
	if s.Tenant != "" {
		return []string{s.Tenant}
	}
	return slices.DeleteFunc(
		l.source.TenantNames(), func(t string) bool { return t == lock.OwnTenant },
	)
}
