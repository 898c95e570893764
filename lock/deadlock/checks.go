package deadlock

import "github.com/fencepost/fencepost/lock/heap"

// check is a pending look at an entry. Thousands can come to be at once, in any order.
type check struct {
	heap.Place
	node *node

	// ahead are entries that have got into the way. When this one has been checked,
	// the next that waits for ever because of them is looked for.
	ahead []*node
}

// Before has those checked first that come first.
func (c *check) Before(other *check) bool { return inOrder(c.node.entry, other.node.entry) < 0 }
