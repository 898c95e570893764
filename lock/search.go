package lock

// search works out whether start, or whoever it begins with if that is nil, can
// ever hold. It explores all that start waits
// for, directly or not, and then plays out what happens if everyone who can lets
// go. What is left at the end waits for ever.
type search struct {
	start   *member
	limit   *Entry      // nothing that joined after it is looked at; nil is all
	entries []*simEntry // each known to its member, queue or named holder
	queues  []*simQueue
	holders []*simHolder
	arena   arena
	looks   *int // of this search and others
	left    int  // how much this one may still look at; below 0 it is given up
	returns bool // the exploration came back to start's holder
	todo    []*member
	free    []*simEntry // that can go
}

// arena is memory that a search took in large pieces: it makes thousands of
// small things, and all of them end together.
type arena struct {
	entries []simEntry
	queues  []simQueue
	holders []simHolder
	order   []*simEntry
	claims  []Claim
	places  []place
}

// take cuts n values off.
func take[T any](from *[]T, n int) []T {
	if len(*from) < n {
		*from = make([]T, max(n, 32))
	}
	taken := (*from)[:n:n]
	*from = (*from)[n:]
	return taken
}

func newSearch(start *member, limit *Entry, looks *int) *search {
	return &search{start: start, limit: limit, looks: looks, left: min(MaxLooks, *looks)}
}

// clear takes the notes out of the table.
func (in *search) clear() {
	for _, n := range in.entries {
		n.sim = nil
	}
	for _, q := range in.queues {
		q.last.queue.sim = nil
	}
	for _, h := range in.holders {
		h.holder.sim = nil
	}
}

// simEntry is an entry in the simulation.
type simEntry struct {
	*member
	places  []place // in all its queues that are part of the simulation
	pending int     // in how many of them it is not in the front yet
	granted bool
	gone    bool
	seen    bool // by the trace
}

type place struct {
	queue *simQueue
	at    int
}

// simQueue is a queue in the simulation: from its head to the last who waits and is
// part of it. Those who can go at once are left out.
type simQueue struct {
	name  string
	last  *slot
	order []*simEntry
	claim []Claim
	front int // how many of order are in the front and not gone
	next  int // the first that was never in the front

	traced, tracedHard int // how much of order the trace has been through, for claims of all kinds and for shared ones
}

// simHolder is a named holder in the simulation.
type simHolder struct {
	holder  *namedHolder
	entries []*simEntry
	waiting int
	traced  bool
}

// idle reports whether the member can go at once: it holds, and its holder waits
// for nothing. That of start waits at least for start.
func (in *search) idle(m *member) bool {
	return m.holds() && (m.holder == nil || !in.starts(m.holder) && m.holder.waiting == 0)
}

func (in *search) starts(h *namedHolder) bool { return in.start != nil && in.start.holder == h }

// sees reports whether m is part of what is looked at.
func (in *search) sees(m *member) bool { return in.limit == nil || inOrder(m.entry, in.limit) <= 0 }

func (in *search) explore() {
	for len(in.todo) > 0 && in.left >= 0 {
		m := in.todo[len(in.todo)-1]
		in.todo = in.todo[:len(in.todo)-1]
		for i := range m.slots {
			if s := &m.slots[i]; !s.inFront {
				in.lookAhead(s)
			}
		}
	}
}

// look reports whether one more may be looked at.
func (in *search) look() bool {
	*in.looks--
	in.left--
	return in.left >= 0
}

// lookAhead includes all who stand before s and were not looked at yet. Numbers only
// grow in a queue, so they tell how far it was gone through.
func (in *search) lookAhead(s *slot) {
	q := s.queue.sim
	if q == nil {
		q = &take(&in.arena.queues, 1)[0]
		q.name = s.claim.Name
		s.queue.sim = q
		in.queues = append(in.queues, q)
	}
	stop := q.last
	if stop != nil && stop.member.entry.Number >= s.member.entry.Number {
		return
	}
	q.last = s
	if stop != nil { // who stands there was included as one who waits
		in.returns = in.returns || in.starts(stop.member.holder)
	}
	for ahead := s.prev; ahead != nil && ahead != stop && in.look(); ahead = ahead.prev {
		if m := ahead.member; !in.idle(m) && !m.leaving() {
			in.returns = in.returns || in.starts(m.holder)
			in.include(m)
		}
	}
}

// include makes the member, and all that its holder waits for, part of the simulation.
func (in *search) include(m *member) {
	if m.sim != nil {
		return
	}
	n := in.newEntry(m)
	if !m.holds() {
		in.todo = append(in.todo, m)
	}
	if m.holder == nil {
		return
	}
	h := m.holder.sim
	first := h == nil
	if first {
		h = &take(&in.arena.holders, 1)[0]
		h.holder, h.entries = m.holder, take(&in.arena.order, 2)[:0]
		m.holder.sim = h
		in.holders = append(in.holders, h)
	}
	h.entries = append(h.entries, n)
	if !m.holds() {
		h.waiting++
	}
	for other := m.holder.first; first && other != nil && in.look(); other = other.next {
		if !other.holds() && !other.leaving() && in.sees(other) {
			in.include(other)
		}
	}
}

func (in *search) newEntry(m *member) *simEntry {
	n := &take(&in.arena.entries, 1)[0]
	n.member, m.sim = m, n
	n.places = take(&in.arena.places, len(m.slots))[:0]
	in.entries = append(in.entries, n)
	return n
}
