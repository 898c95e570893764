package outbox

import (
	"time"

	"github.com/fencepost/fencepost/lock/heap"
)

// dueQueue is the deliveries that wait for an attempt, the next one in front.
type dueQueue struct{ heap.Heap[*delivery] }

// Before has that one attempted first that is due first.
func (d *delivery) Before(other *delivery) bool { return d.due.Before(other.due) }

// timer returns what is sent to when the next one is due; nil if there is none.
func (q *dueQueue) timer() (<-chan time.Time, func() bool) {
	if q.Len() == 0 {
		return noTimer()
	}
	return timerAt(q.First().due)
}

func timerAt(at time.Time) (<-chan time.Time, func() bool) {
	t := time.NewTimer(time.Until(at))
	return t.C, t.Stop
}

func noTimer() (<-chan time.Time, func() bool) { return nil, func() bool { return true } }

// schedule has a delivery attempted at an instant of this process's clock.
func (w *owner) schedule(d *delivery, at time.Time) {
	w.due.remove(d)
	d.due = at
	w.due.Push(d)
}

func (q *dueQueue) remove(d *delivery) {
	if d.Queued() {
		q.Remove(d)
	}
}

// attemptDue attempts what is due.
func (w *owner) attemptDue() {
	now := time.Now()
	for w.due.Len() > 0 && !w.due.First().due.After(now) {
		w.attempt(w.due.Pop())
	}
}
