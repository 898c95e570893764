package lock

import "math"

// MaxLooks is how many places in queues, and entries of their workers, one search for a
// deadlock looks at. Everything that is granted waits for it meanwhile, also other
// tenants' locks, so it must not grow with the queues that one tenant can make. Which
// ones it looks at depends on the entries alone, and so is the same for all replicas.
const MaxLooks = 5_000

// Wait is one step of a cycle: somebody waits for a lock, and somebody is in the
// way.
type Wait struct {
	Waiter *Entry
	Lock   string

	// Blocker holds the lock, or stands before Waiter in its queue if Holds is
	// false.
	Blocker *Entry
	Holds   bool
}

// Cycle returns the waits that lead from e back to the holder of e, or nil if
// there are none: then e comes to hold once all others have done what they can.
// Each waiter of the cycle belongs to the worker of the blocker before it, or is
// that blocker itself; the last blocker belongs to the worker of e.
//
// e is an entry that waits, or one that would be put at the end of its queues. A
// holder that names itself waits as a whole: it lets go of nothing while one of
// its entries waits. A holder without a name can let go at any time, but its
// entry has to be granted before it can. Entries that do not want to queue, and
// rejected ones, are in nobody's way.
//
// It costs O(entries before e, and before those that they wait for), and next to
// nothing if e's holder has no other entry, or none for which anybody waits. It looks at
// no more than [MaxLooks] places: of a cycle that takes more nothing is said. It leaves
// the table as it was, but makes notes in it meanwhile.
func (t *Table) Cycle(e *Entry) []Wait {
	looks := MaxLooks
	return cycleAt(t.candidate(e), &looks)
}

// cycleAt looks at what there was when start joined: entries that stand after it in
// the order of all entries are not seen. It takes what it costs from looks.
func cycleAt(start *member, looks *int) []Wait {
	if start == nil {
		return nil
	}
	in := newSearch(start, start.entry, looks)
	defer in.clear()
	in.meet(in.start)
	in.explore()
	if !in.returns || in.left < 0 {
		return nil
	}
	in.play()
	if start.node.granted {
		return nil
	}
	return in.trace()
}

// candidate returns e as a member, in the table or behind everyone in it, or nil
// if it cannot close a cycle: it holds, nobody named its holder, it does not
// queue, or its holder has nothing that others wait for.
func (t *Table) candidate(e *Entry) *member {
	w := t.workers[workerOf(e)]
	if !e.Named || e.Tries() || w == nil {
		return nil
	}
	m := t.members[e.ID]
	if m == nil {
		m = t.last(e, w)
	} else if w.first == w.last {
		return nil
	}
	if m.holds() || m.leaving() || !w.awaited(m) {
		return nil
	}
	return m
}

// last returns e as if it had joined now, without changing the table.
func (t *Table) last(e *Entry, w *worker) *member {
	late := *e
	late.Number = math.MaxUint64
	m := &member{entry: &late, worker: w, slots: make([]slot, len(e.Claims))}
	for i, c := range e.Claims {
		s := slot{member: m, claim: c, queue: t.queues[Ref{e.Tenant, c.Name}]}
		if s.queue == nil || s.queue.next == nil && joins(s.queue.head.claim, s.queue.front, c) {
			s.inFront = true
			m.fronts++
		} else {
			s.prev = s.queue.tail
		}
		m.slots[i] = s
	}
	return m
}

// search works out whether start, or whoever it begins with if that is nil, can
// ever hold. It explores all that start waits
// for, directly or not, and then plays out what happens if everyone who can lets
// go. What is left at the end waits for ever.
type search struct {
	start   *member
	limit   *Entry  // nothing that joined after it is looked at; nil is all
	nodes   []*node // each known to its member, each line to its queue, each crew to its worker
	lines   []*line
	crews   []*crew
	spare   spare
	looks   *int // of this search and others
	left    int  // how much this one may still look at; below 0 it is given up
	returns bool // the exploration came back to start's worker
	todo    []*member
	free    []*node // that can go
}

// spare is memory that a search took in large pieces: it makes thousands of
// small things, and all of them end together.
type spare struct {
	nodes  []node
	lines  []line
	crews  []crew
	order  []*node
	claims []Claim
	places []place
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
	for _, n := range in.nodes {
		n.node = nil
	}
	for _, l := range in.lines {
		l.last.queue.line = nil
	}
	for _, c := range in.crews {
		c.worker.crew = nil
	}
}

// node is a member in the play.
type node struct {
	*member
	places  []place // in all its queues that are part of the play
	pending int     // in how many of them it is not in the front yet
	granted bool
	gone    bool
	seen    bool // by the trace
}

type place struct {
	line *line
	at   int
}

// line is a queue, as far as it matters: from its head to the last who waits and
// is part of the play. Those who can go at once are left out.
type line struct {
	name  string
	last  *slot
	order []*node
	claim []Claim
	front int // how many of order are in the front and not gone
	next  int // the first that was never in the front

	traced, tracedHard int // how much of order the trace has been through, for claims of all kinds and for shared ones
}

// crew is a worker in the play.
type crew struct {
	worker  *worker
	nodes   []*node
	waiting int
	traced  bool
}

// idle reports whether the member can go at once: it holds, and its worker waits
// for nothing. That of start waits at least for start.
func (in *search) idle(m *member) bool {
	return m.holds() && (m.worker == nil || !in.starts(m.worker) && m.worker.waiting == 0)
}

func (in *search) starts(w *worker) bool { return in.start != nil && in.start.worker == w }

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

// lookAhead meets all who stand before s and were not met there yet. Numbers only
// grow in a queue, so they tell how far it was gone through.
func (in *search) lookAhead(s *slot) {
	l := s.queue.line
	if l == nil {
		l = &take(&in.spare.lines, 1)[0]
		l.name = s.claim.Name
		s.queue.line = l
		in.lines = append(in.lines, l)
	}
	stop := l.last
	if stop != nil && stop.member.entry.Number >= s.member.entry.Number {
		return
	}
	l.last = s
	if stop != nil { // who stands there was met as one who waits
		in.returns = in.returns || in.starts(stop.member.worker)
	}
	for ahead := s.prev; ahead != nil && ahead != stop && in.look(); ahead = ahead.prev {
		if m := ahead.member; !in.idle(m) && !m.leaving() {
			in.returns = in.returns || in.starts(m.worker)
			in.meet(m)
		}
	}
}

// meet makes the member, and all that its worker waits for, part of the play.
func (in *search) meet(m *member) {
	if m.node != nil {
		return
	}
	n := in.newNode(m)
	if !m.holds() {
		in.todo = append(in.todo, m)
	}
	if m.worker == nil {
		return
	}
	c := m.worker.crew
	first := c == nil
	if first {
		c = &take(&in.spare.crews, 1)[0]
		c.worker, c.nodes = m.worker, take(&in.spare.order, 2)[:0]
		m.worker.crew = c
		in.crews = append(in.crews, c)
	}
	c.nodes = append(c.nodes, n)
	if !m.holds() {
		c.waiting++
	}
	for other := m.worker.first; first && other != nil && in.look(); other = other.next {
		if !other.holds() && !other.leaving() && in.sees(other) {
			in.meet(other)
		}
	}
}

func (in *search) newNode(m *member) *node {
	n := &take(&in.spare.nodes, 1)[0]
	n.member, m.node = m, n
	n.places = take(&in.spare.places, len(m.slots))[:0]
	in.nodes = append(in.nodes, n)
	return n
}

// arrange puts those who matter in a queue in order.
func (in *search) arrange(l *line) {
	size := 0
	for s := l.last; s != nil; s = s.prev {
		if s.member.node != nil {
			size++
		}
	}
	l.order, l.claim = take(&in.spare.order, size), take(&in.spare.claims, size)
	for s := l.last; s != nil; s = s.prev {
		if s.member.node != nil {
			size--
			l.order[size], l.claim[size] = s.member.node, s.claim
		}
	}
	for i, n := range l.order {
		n.places = append(n.places, place{l, i})
		n.pending++
	}
}

// play lets everyone go who can, until nobody can.
func (in *search) play() {
	for _, l := range in.lines {
		in.arrange(l)
	}
	for _, n := range in.nodes {
		if n.pending == 0 {
			in.grant(n)
		}
	}
	for _, l := range in.lines {
		in.advance(l)
	}
	for len(in.free) > 0 {
		n := in.free[len(in.free)-1]
		in.free = in.free[:len(in.free)-1]
		n.gone = true
		for _, p := range n.places {
			p.line.front--
			in.advance(p.line)
		}
	}
}

// advance moves the front of a line. Claims in one front are alike, so that the
// latest speaks for all.
func (in *search) advance(l *line) {
	for l.next < len(l.order) && joins(l.claim[max(l.next-1, 0)], l.front, l.claim[l.next]) {
		n := l.order[l.next]
		l.next++
		l.front++
		if n.pending--; n.pending == 0 {
			in.grant(n)
		}
	}
}

// grant notes that n holds, and frees those who wait for nothing any more.
func (in *search) grant(n *node) {
	n.granted = true
	if n.worker == nil {
		in.free = append(in.free, n)
		return
	}
	c := n.worker.crew
	if !n.holds() {
		c.waiting--
	}
	if c.waiting > 0 {
		return
	}
	if n.holds() {
		in.free = append(in.free, n)
		return
	}
	// The last that the worker waited for: it can let go of all.
	for _, other := range c.nodes {
		if other.granted {
			in.free = append(in.free, other)
		}
	}
}

// step is a node that the trace has reached, and how.
type step struct {
	node *node
	wait Wait // by which it was reached: its blocker is of the node's worker
	from int  // the step before; -1 at the start
}

// trace finds the shortest way from start to its own worker through those who are
// left.
func (in *search) trace() []Wait {
	start := in.start.node
	start.seen = true
	steps := []step{{node: start, from: -1}}
	for i := 0; i < len(steps); i++ {
		for _, p := range steps[i].node.places {
			if p.at < p.line.next {
				continue // it is in the front here
			}
			from, to := p.line.unseen(p.at)
			for j := from; j < to; j++ {
				b := p.line.order[j]
				if b.gone || !p.blocks(j) {
					continue
				}
				w := Wait{Waiter: steps[i].node.entry, Lock: p.line.name, Blocker: b.entry, Holds: b.holds()}
				if b.worker == start.worker {
					return unwind(steps, i, w)
				}
				steps = b.follow(steps, w, i)
			}
		}
	}
	return nil
}

// unseen returns which part of the line's first at nodes was not traced for a
// claim like the one there, and notes that it is now.
func (l *line) unseen(at int) (from, to int) {
	if l.claim[at].Mode == Shared {
		from = max(l.tracedHard, l.traced)
		l.tracedHard = max(l.tracedHard, at)
		return from, at
	}
	from = l.traced
	l.traced = max(l.traced, at)
	return from, at
}

// blocks reports whether node j of the line is in the way of the one at p.
func (p place) blocks(j int) bool {
	mine, other := p.line.claim[p.at], p.line.claim[j]
	return mine.Mode != Shared || other.Mode != Shared
}

// follow adds what the blocker waits for: itself, or all that its worker does.
func (n *node) follow(steps []step, w Wait, from int) []step {
	if n.worker == nil {
		return n.visit(steps, w, from)
	}
	if crew := n.worker.crew; !crew.traced {
		crew.traced = true
		for _, other := range crew.nodes {
			steps = other.visit(steps, w, from)
		}
	}
	return steps
}

func (n *node) visit(steps []step, w Wait, from int) []step {
	if n.granted || n.seen {
		return steps
	}
	n.seen = true
	return append(steps, step{n, w, from})
}

func unwind(steps []step, i int, closing Wait) []Wait {
	cycle := []Wait{closing}
	for ; steps[i].from >= 0; i = steps[i].from {
		cycle = append(cycle, steps[i].wait)
	}
	for a, b := 0, len(cycle)-1; a < b; a, b = a+1, b-1 {
		cycle[a], cycle[b] = cycle[b], cycle[a]
	}
	return cycle
}
