package audit

import (
	"cmp"
	"slices"

	"github.com/fencepost/fencepost/store"
)

// kept is what is known of a record that stays, so far.
type kept struct {
	key     store.RecordKey
	version uint64
}

// share is a part of the log that has bounds of its own.
type share struct {
	mostOfTenant, most int

	of map[string][]kept // by tenant
}

func newShare(mostOfTenant, most int) *share {
	return &share{mostOfTenant: mostOfTenant, most: most, of: map[string][]kept{}}
}

func (s *share) add(one kept) { s.of[one.key.Tenant] = append(s.of[one.key.Tenant], one) }

// tooMuchOfTenants takes the oldest records of tenants that have too many.
func (s *share) tooMuchOfTenants() []kept { return s.cut(s.mostOfTenant) }

// tooMuchInAll takes what is too much of all: of each tenant the oldest beyond what would be as much
// for each that has more. Who has little loses nothing to who has much.
func (s *share) tooMuchInAll() []kept {
	gone := s.cut(s.fair())
	var all []kept
	for _, of := range s.of {
		all = append(all, of...)
	}
	if len(all) > s.most { // there are more tenants than places
		newestFirst(all)
		gone = append(gone, all[s.most:]...)
	}
	return gone
}

// cut takes all but the newest so many of each tenant.
func (s *share) cut(most int) (gone []kept) {
	for tenant, of := range s.of {
		if len(of) > most {
			newestFirst(of)
			gone = append(gone, of[most:]...)
			s.of[tenant] = of[:most:most]
		}
	}
	return gone
}

// fair is how many each tenant may have so that all have no more than there may be, at least 1.
func (s *share) fair() int {
	counts := make([]int, 0, len(s.of))
	for _, of := range s.of {
		counts = append(counts, len(of))
	}
	slices.Sort(counts)
	left := s.most
	for i, n := range counts { // who has least takes what he has, and leaves the rest to the others
		if others := len(counts) - i; n*others > left {
			return max(1, left/others)
		}
		left -= n
	}
	return s.mostOfTenant
}

func newestFirst(all []kept) {
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(b.key.ID, a.key.ID) })
}
