package lock

// arrange puts those who matter in a queue in order.
func (in *search) arrange(q *simQueue) {
	size := 0
	for s := q.last; s != nil; s = s.prev {
		if s.member.sim != nil {
			size++
		}
	}
	q.order, q.claim = take(&in.arena.order, size), take(&in.arena.claims, size)
	for s := q.last; s != nil; s = s.prev {
		if s.member.sim != nil {
			size--
			q.order[size], q.claim[size] = s.member.sim, s.claim
		}
	}
	for i, n := range q.order {
		n.places = append(n.places, place{q, i})
		n.pending++
	}
}

// simulate lets everyone go who can, until nobody can.
func (in *search) simulate() {
	for _, q := range in.queues {
		in.arrange(q)
	}
	for _, n := range in.entries {
		if n.pending == 0 {
			in.grant(n)
		}
	}
	for _, q := range in.queues {
		in.advance(q)
	}
	for len(in.free) > 0 {
		n := in.free[len(in.free)-1]
		in.free = in.free[:len(in.free)-1]
		n.gone = true
		for _, p := range n.places {
			p.queue.front--
			in.advance(p.queue)
		}
	}
}

// advance moves the front of a queue. Claims in one front are alike, so that the
// latest speaks for all.
func (in *search) advance(q *simQueue) {
	for q.next < len(q.order) && joins(q.claim[max(q.next-1, 0)], q.front, q.claim[q.next]) {
		n := q.order[q.next]
		q.next++
		q.front++
		if n.pending--; n.pending == 0 {
			in.grant(n)
		}
	}
}

// grant notes that n holds, and frees those who wait for nothing any more.
func (in *search) grant(n *simEntry) {
	n.granted = true
	if n.holder == nil {
		in.free = append(in.free, n)
		return
	}
	h := n.holder.sim
	if !n.holds() {
		h.waiting--
	}
	if h.waiting > 0 {
		return
	}
	if n.holds() {
		in.free = append(in.free, n)
		return
	}
	// The last that the holder waited for: it can let go of all.
	for _, other := range h.entries {
		if other.granted {
			in.free = append(in.free, other)
		}
	}
}
