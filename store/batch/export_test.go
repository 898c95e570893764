package batch

// Kept is how much a committer keeps of writes.
func (c *Committer[P, O]) Kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending
	if p.turns.now != nil {
		return -1
	}
	return len(p.chains) + len(p.tenants) + p.ready + p.lingering + p.patient + p.blocked +
		p.all.Writes + p.all.Bytes
}
