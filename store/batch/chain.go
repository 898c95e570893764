package batch

// chain holds the pending writes that share a key, in the order of their arrival.
type chain[P, O any] struct {
	first, last *link[P, O]
	size        Size // including reservations
}

// link is a write's position in the chain of one key.
type link[P, O any] struct {
	key        string
	write      *Write[P, O]
	prev, next *link[P, O]
}

// countKey adds writes to the size of a key's chain; negative numbers subtract.
func (p *pending[P, O]) countKey(key string, writes, bytes int) *chain[P, O] {
	c := p.chains[key]
	if c == nil {
		c = &chain[P, O]{}
		p.chains[key] = c
	}
	if c.size.add(writes, bytes); c.size.Writes == 0 {
		delete(p.chains, key)
	}
	return c
}

func (p *pending[P, O]) append(w *Write[P, O], key string) {
	if c := p.chains[key]; c != nil && c.last != nil && c.last.write == w {
		return // w names the key twice
	}
	c, s := p.countKey(key, 1, w.Bytes), &w.state
	s.links = append(s.links, link[P, O]{key: key, write: w, prev: c.last})
	l := &s.links[len(s.links)-1]
	if c.last == nil {
		c.first = l
	} else {
		c.last.next = l
		s.behind++
	}
	c.last = l
}

// unlink removes a write from one chain. It returns the next write if that becomes ready.
func (p *pending[P, O]) unlink(l *link[P, O]) *Write[P, O] {
	c := p.countKey(l.key, -1, -l.write.Bytes)
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		c.last = l.prev
	}
	if l.prev != nil {
		l.prev.next = l.next
		return nil
	}
	if c.first = l.next; c.first == nil {
		return nil
	}
	next := c.first.write
	if next.state.behind--; next.state.behind > 0 {
		return nil
	}
	return next
}
