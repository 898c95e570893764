package event

import (
	"slices"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

// Filter is what of the events a reader is told.
type Filter struct {
	Types  []lock.EventKind // nil is all
	Locks  []auth.Pattern   // of names, of which one has to match; nil is all
	Within []auth.Pattern   // of names that the reader may use; nil is all
}

// Effort is how many times as long it takes to look at a name if it is held against all patterns, see [auth.Effort].
func (f *Filter) Effort() int { return auth.Effort(f.Within, f.Locks) }

// Claims returns what of an event the reader is told: of a set, the locks that he asked for
// and may see. None says that he is not told of it.
func (f *Filter) Claims(e *lock.Event) []lock.Claim {
	if f.Types != nil && !slices.Contains(f.Types, e.Kind) {
		return nil
	}
	all := e.Entry.Claims
	seen := 0
	for i := range all {
		if f.sees(all[i].Name) {
			seen++
		}
	}
	switch seen {
	case 0:
		return nil
	case len(all):
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c lock.Claim) bool { return !f.sees(c.Name) })
}

func (f *Filter) sees(name string) bool { return matches(f.Within, name) && matches(f.Locks, name) }

func matches(patterns []auth.Pattern, name string) bool {
	if patterns == nil {
		return true
	}
	for i := range patterns {
		if patterns[i].Match(name) {
			return true
		}
	}
	return false
}
