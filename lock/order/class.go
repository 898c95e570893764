package order

import "strings"

// classOf returns the class of a lock, so that a rule about orders:1 and orders:2 is one rule.
// The text before the last colon is the class: orders:1 belongs to orders:*. A name without a
// colon is its own class.
func classOf(name string) string {
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		return name[:i+1] + "*"
	}
	return name
}

// step returns the classes of two locks taken one after the other. Two locks of one class become
// the smaller and the greater one by name, because any consistent order of the two is safe.
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

// Marks for the two locks of one class. Names contain no spaces.
const (
	smaller = " (smaller name)"
	greater = " (greater name)"
)
