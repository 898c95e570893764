package order

import (
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/lock"
)

// Classes groups locks by their names, so that a rule about orders:1 and orders:2
// is one rule. A lock is of the class of the first pattern that its name matches.
// Otherwise what stands before the last colon names its class: orders:1 is of
// orders:*. A name without a colon is a class of its own.
type Classes struct{ patterns []string }

// ParseClasses takes patterns in which a star stands for any run of characters.
func ParseClasses(patterns ...string) (Classes, error) {
	for _, p := range patterns {
		if !lock.ValidName(strings.ReplaceAll(p, "*", "a")) {
			return Classes{}, fmt.Errorf("%q is not how lock names can look", p)
		}
	}
	return Classes{patterns: patterns}, nil
}

// Of returns the class of the lock with the name.
func (c Classes) Of(name string) string {
	for _, p := range c.patterns {
		if matches(p, name) {
			return p
		}
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		return name[:i+1] + "*"
	}
	return name
}

// step returns the classes of two locks that are taken one after the other. Two
// of one class become the smaller and the greater one by name, because to take
// them in either way, but always in the same, is safe.
func (c Classes) step(held, taken string) (from, to string) {
	from, to = c.Of(held), c.Of(taken)
	switch {
	case from != to:
		return from, to
	case held < taken:
		return from + smaller, to + greater
	}
	return from + greater, to + smaller
}

// What tells two locks of one class apart. Names do not contain spaces.
const (
	smaller = " (smaller name)"
	greater = " (greater name)"
)

// matches reports whether a pattern selects the name. The leftmost place of each
// piece between stars leaves the most room for those after it.
func matches(pattern, name string) bool {
	pieces := strings.Split(pattern, "*")
	last := len(pieces) - 1
	if last == 0 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, pieces[0])
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, pieces[last]); !ok {
		return false
	}
	for _, piece := range pieces[1:last] {
		if _, rest, ok = strings.Cut(rest, piece); !ok {
			return false
		}
	}
	return true
}
