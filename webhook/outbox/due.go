package outbox

import (
	"container/heap"
	"time"
)

// dueQueue is the deliveries that wait for an attempt, the next one in front.
type dueQueue []*delivery

// timer returns what is sent to when the next one is due; nil if there is none.
func (q dueQueue) timer() (<-chan time.Time, func() bool) {
	if len(q) == 0 {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(time.Until(q[0].due))
	return t.C, t.Stop
}

// schedule has a delivery attempted at an instant of this process's clock.
func (w *owner) schedule(d *delivery, at time.Time) {
	w.due.remove(d)
	d.due = at
	heap.Push(&w.due, d)
}

func (q *dueQueue) remove(d *delivery) {
	if d.place >= 0 {
		heap.Remove(q, d.place)
	}
}

// attemptDue attempts what is due.
func (w *owner) attemptDue() {
	now := time.Now()
	for len(w.due) > 0 && !w.due[0].due.After(now) {
		w.attempt(heap.Pop(&w.due).(*delivery))
	}
}

// Len implements [heap.Interface].
func (q dueQueue) Len() int { return len(q) }

// Less implements [heap.Interface].
func (q dueQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap implements [heap.Interface].
func (q dueQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements [heap.Interface].
func (q *dueQueue) Push(x any) {
	d := x.(*delivery)
	d.place = len(*q)
	*q = append(*q, d)
}

// Pop implements [heap.Interface].
func (q *dueQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	last.place = -1
	return last
}
