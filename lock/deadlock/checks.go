package deadlock

// check is a pending look at an entry.
type check struct {
	node  *node
	place int // among the pending

	// ahead are entries that have got into the way. When this one has been checked,
	// the next that waits for ever because of them is looked for.
	ahead []*node
}

// checks are those that are pending, as a heap: thousands can come to be at once, in any
// order.
type checks []*check

// Len implements [heap.Interface], like the methods below.
func (c checks) Len() int           { return len(c) }
func (c checks) Less(i, j int) bool { return inOrder(c[i].node.entry, c[j].node.entry) < 0 }
func (c checks) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}

// Push adds one at the end.
func (c *checks) Push(x any) {
	b := x.(*check)
	b.place = len(*c)
	*c = append(*c, b)
}

// Pop removes the last.
func (c *checks) Pop() any {
	last := len(*c) - 1
	b := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	return b
}
