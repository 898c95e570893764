package order

import "strings"

// classOf returns the class of the lock with the name, so that a rule about orders:1 and orders:2
// is one rule. What stands before the last colon names the class: orders:1 is of orders:*. A name
// without a colon is a class of its own.
func classOf(name string) string {
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		return name[:i+1] + "*"
	}
	return name
}

// step returns the classes of two locks that are taken one after the other. Two
// of one class become the smaller and the greater one by name, because to take
// them in either way, but always in the same, is safe.
func step(held, taken string) (from, to string) {
	from, to = classOf(held), classOf(taken)
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
