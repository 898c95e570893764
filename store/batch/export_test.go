package batch

// Kept is how many keys and tenants a committer remembers.
func (c *Committer[P, O]) Kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending
	return len(p.chains) + len(p.tenants) + p.turns.Len() + p.held.Len() + p.ops + p.bytes + p.blocked + p.urgent
}
