package board

import (
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/service/view"
)

// Tenant is how many locks of a tenant are in use, of those that somebody may see. An entry of
// several locks counts at each.
type Tenant struct {
	Name      string
	Locks     int
	Held      int
	Contended int
	Holding   int       // entries
	Waiting   int       // entries
	Oldest    *view.Row // where somebody has waited longest; nil if nobody waits
}

// Tenants are a part of those with locks in use, by name.
type Tenants struct {
	Tenants  []Tenant
	Next     string // the last of them if there are more
	All      int    // how many there are
	Revision uint64
	Now      time.Time
}

// Tenants counts what each tenant uses, after the one with the name after, so many at most.
func (b *Board) Tenants(s Sight, after string, most int) *Tenants {
	all := b.look(s, "")
	defer all.done()
	out, totals := &Tenants{Now: b.now()}, map[string]*Totals{}
	out.Revision = all.each(func(row *view.Row) {
		if !s.Sees(row.Ref) {
			return
		}
		t := totals[row.Tenant]
		if t == nil {
			t = &Totals{}
			totals[row.Tenant] = t
		}
		t.count(row, all.keep)
	})
	out.All = len(totals)
	for name, t := range totals {
		if name > after {
			out.Tenants = append(out.Tenants, Tenant{name, t.Locks, t.Held, t.Contended, t.Holding, t.Waiting, t.Oldest})
		}
	}
	slices.SortFunc(out.Tenants, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	if len(out.Tenants) > most {
		out.Tenants = out.Tenants[:most]
		out.Next = out.Tenants[most-1].Name
	}
	return out
}
