package event

import (
	"slices"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

// Filter selects the events that a reader gets.
type Filter struct {
	Types  []lock.EventKind // nil is all
	Locks  []auth.Pattern   // patterns of names; one has to match; nil is all
	Within []auth.Pattern   // of names that the reader may use; nil is all
}

// Claims returns the part of an event that the reader gets: of a set, the locks that it asked for
// and may see. With no claims it does not get the event.
func (f *Filter) Claims(e *lock.Event) []lock.Claim {
	if !f.Wants(e.Kind) {
		return nil
	}
	all := e.Entry.Claims
	seen := all[:0:0]
	for i := range all {
		switch {
		case !f.sees(all[i].Name):
		case len(seen) == i: // all until now
			seen = all[: i+1 : i+1]
		default:
			seen = append(seen, all[i])
		}
	}
	return seen
}

// Wants reports whether the reader gets events of a kind.
func (f *Filter) Wants(kind lock.EventKind) bool {
	return f.Types == nil || slices.Contains(f.Types, kind)
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
