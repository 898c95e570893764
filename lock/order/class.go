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
type Classes struct{ patterns []lock.Pattern }

// ParseClasses takes [lock.Pattern]s.
func ParseClasses(texts ...string) (c Classes, err error) {
	for _, text := range texts {
		p, err := lock.ParsePattern(text)
		if err != nil || !lock.ValidName(strings.Replace(text, "*", "a", 1)) {
			return Classes{}, fmt.Errorf("%q is not how lock names can look, with at most one star", text)
		}
		c.patterns = append(c.patterns, p)
	}
	return c, nil
}

// Of returns the class of the lock with the name.
func (c Classes) Of(name string) string {
	for _, p := range c.patterns {
		if p.Match(name) {
			return p.String()
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
