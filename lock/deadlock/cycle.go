package deadlock

import (
	"slices"

	"github.com/fencepost/fencepost/lock"
)

// step is an entry that the trace has reached, and how.
type step struct {
	entry *simEntry
	wait  lock.Wait // by which it was reached: its blocker is of the entry's holder
	from  int       // the step before; -1 at the start
}

// trace finds the shortest way from start back to its own holder through the entries that are
// left.
func (in *search) trace() []lock.Wait {
	start := in.known[in.start]
	start.seen = true
	steps := []step{{entry: start, from: -1}}
	for i := 0; i < len(steps); i++ {
		for _, p := range steps[i].entry.places {
			if p.at < p.queue.next {
				continue // it is in the front here
			}
			from, to := p.queue.unseen(p.at)
			for j := from; j < to; j++ {
				b := p.queue.order[j]
				if b.gone || !p.blocks(j) {
					continue
				}
				w := lock.Wait{
					Waiter: steps[i].entry.entry, Lock: p.queue.name, Blocker: b.entry, Holds: b.holds(),
				}
				if b.holder == start.holder {
					return unwind(steps, i, w)
				}
				steps = b.follow(steps, w, i)
			}
		}
	}
	return nil
}

// unseen returns which part of the queue's first at entries the trace has not visited for a claim
// like this one, and marks it as visited.
func (q *simQueue) unseen(at int) (from, to int) {
	if q.order[at].claim.Mode == lock.Shared {
		from = max(q.tracedHard, q.traced)
		q.tracedHard = max(q.tracedHard, at)
		return from, at
	}
	from = q.traced
	q.traced = max(q.traced, at)
	return from, at
}

// blocks reports whether entry j of the queue blocks the one at p.
func (p simPlace) blocks(j int) bool {
	mine, other := p.queue.order[p.at].claim, p.queue.order[j].claim
	return mine.Mode != lock.Shared || other.Mode != lock.Shared
}

// follow adds what the blocker waits for: itself, or everything that its holder waits for.
func (n *simEntry) follow(steps []step, w lock.Wait, from int) []step {
	if n.with == nil {
		return n.visit(steps, w, from)
	}
	if h := n.with; !h.traced {
		h.traced = true
		for _, other := range h.entries {
			steps = other.visit(steps, w, from)
		}
	}
	return steps
}

func (n *simEntry) visit(steps []step, w lock.Wait, from int) []step {
	if n.granted || n.seen {
		return steps
	}
	n.seen = true
	return append(steps, step{n, w, from})
}

func unwind(steps []step, i int, closing lock.Wait) []lock.Wait {
	cycle := []lock.Wait{closing}
	for ; steps[i].from >= 0; i = steps[i].from {
		cycle = append(cycle, steps[i].wait)
	}
	slices.Reverse(cycle)
	return cycle
}
