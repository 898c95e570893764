package deadlock

import "github.com/fencepost/fencepost/lock"

// search decides whether start, or the entries that it begins with, can ever hold. It explores
// everything that they wait for, directly or not, and then releases every holder that can
// proceed. The rest waits forever. A search shares nothing with concurrent searches.
type search struct {
	start   *node
	limit   *lock.Entry // ignore entries that joined after it; nil ignores none
	entries []*simEntry // in the order of discovery, like the queues
	queues  []*simQueue
	known   map[*node]*simEntry
	queueOf map[*lock.Queue]*simQueue
	waiters map[*holder]*simHolder
	looks   *int // of this search and others
	left    int  // reads that this search has left; below 0 it gives up
	returns bool // the exploration came back to start's holder
	todo    []*node
	free    []*simEntry // entries that can proceed
}

func newSearch(start *node, limit *lock.Entry, looks *int) *search {
	return &search{
		start: start, limit: limit, looks: looks, left: min(MaxLooks, *looks),
		known: map[*node]*simEntry{}, queueOf: map[*lock.Queue]*simQueue{},
		waiters: map[*holder]*simHolder{},
	}
}

// simEntry is an entry in the simulation.
type simEntry struct {
	*node
	with    *simHolder // nil if its holder has no name
	places  []simPlace // in all its queues that are part of the simulation
	pending int        // in how many of them it is not in the front yet
	granted bool
	gone    bool
	seen    bool // by the trace
}

// simPlace is where an entry stands in a queue of the simulation.
type simPlace struct {
	queue *simQueue
	at    int
}

// simQueue is a queue in the simulation, without the entries that can go at once.
type simQueue struct {
	name  string
	last  *node // up to which it was read
	order []simClaim
	taken int // permits of the entries of order that are in the front and still hold
	next  int // the first that was never in the front

	traced, tracedHard int // how much of order was traced, for all claims and for shared ones
}

type simClaim struct {
	*simEntry
	claim lock.Claim
}

// simHolder is a named holder in the simulation.
type simHolder struct {
	entries []*simEntry
	waiting int
	traced  bool
}

// idle reports whether the node can release at once: it holds, and its holder waits for nothing.
func (in *search) idle(n *node) bool {
	return n.holds() && (n.holder == nil || !in.starts(n.holder) && n.holder.waiting == 0)
}

func (in *search) starts(h *holder) bool { return in.start != nil && in.start.holder == h }

// sees reports whether n is part of the search.
func (in *search) sees(n *node) bool { return in.limit == nil || inOrder(n.entry, in.limit) <= 0 }

func (in *search) explore() {
	for len(in.todo) > 0 && in.left >= 0 {
		n := in.todo[len(in.todo)-1]
		in.todo = in.todo[:len(in.todo)-1]
		for p := range n.places() {
			if !p.inFront {
				in.lookAhead(n, p)
			}
		}
	}
}

// look reports whether the search may read one more entry.
func (in *search) look() bool {
	*in.looks--
	in.left--
	return in.left >= 0
}

// lookAhead includes the unread entries before a node. Numbers only grow in a queue, so they show
// how far it was read.
func (in *search) lookAhead(n *node, p place) {
	q := in.queueOf[p.queue]
	if q == nil {
		q = &simQueue{name: p.claim.Name}
		in.queueOf[p.queue] = q
		in.queues = append(in.queues, q)
	}
	stop := q.last
	if stop != nil && stop.entry.Number >= n.entry.Number {
		return
	}
	q.last = n
	if stop != nil { // it was included as a waiting entry
		in.returns = in.returns || in.starts(stop.holder)
	}
	for s := p.before; s != nil && nodeAt(s) != stop && in.look(); s = s.Prev() {
		ahead := nodeAt(s)
		if !in.idle(ahead) && !ahead.leaving() {
			in.returns = in.returns || in.starts(ahead.holder)
			in.include(ahead)
		}
	}
}

// include adds the node, and everything that its holder waits for, to the simulation.
func (in *search) include(n *node) {
	if in.known[n] != nil {
		return
	}
	one := &simEntry{node: n, places: make([]simPlace, 0, len(n.entry.Claims))}
	in.known[n] = one
	in.entries = append(in.entries, one)
	if !n.holds() {
		in.todo = append(in.todo, n)
	}
	if n.holder == nil {
		return
	}
	h := in.waiters[n.holder]
	first := h == nil
	if first {
		h = &simHolder{}
		in.waiters[n.holder] = h
	}
	one.with = h
	h.entries = append(h.entries, one)
	if !n.holds() {
		h.waiting++
	}
	for other := n.holder.first; first && other != nil && in.look(); other = other.next {
		if !other.holds() && !other.leaving() && in.sees(other) {
			in.include(other)
		}
	}
}
