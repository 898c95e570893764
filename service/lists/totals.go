package lists

import (
	"time"

	"github.com/fencepost/fencepost/service/view"
)

// Totals count locks. An entry of several locks counts at each.
type Totals struct {
	Locks     int // in use
	Held      int // of these locks
	Contended int
	Holding   int // entries
	Waiting   int
	Oldest    *view.Row // the lock with the oldest wait; nil if none waits

	Worst    []Line // locks whose holders hang, then those with the longest queues
	Revision uint64
	Now      time.Time
}

// hanging is added to the keys of locks whose holders hang: more than can wait.
const hanging = 1 << 40

// Totals counts the locks in sight, and lists the worst of them.
func (l *Lists) Totals(s Sight, worst int) *Totals {
	t := &Totals{Now: l.now()}
	q := Query{Sort: ByWaiters, Down: true}
	first := best{most: worst, compare: q.compare}
	t.Revision = l.source.EachRow(s.counted(), s.Tenant, func(row *view.Row) {
		if !s.Sees(row.Ref) {
			return
		}
		t.count(row)
		if row.Waiting == 0 {
			return
		}
		if line := l.contended(row, t.Now); first.wants(line) {
			line.Row = keep(row)
			first.add(line)
		}
	})
	if s.May == nil {
		t.set(l.source.Sums(s.Tenant)) // not earlier: they include the revision
	}
	t.Worst = first.take()
	l.addFigures(t.Worst, t.Now)
	for i := range t.Worst {
		t.Worst[i].Usual = l.figures.Of(t.Worst[i].Ref).UsualHold()
	}
	return t
}

// contended returns the line of a lock with waiters.
func (l *Lists) contended(row *view.Row, now time.Time) Line {
	line := l.line(ByWaiters, row, now)
	since := row.Since()
	if since.IsZero() {
		return line
	}
	line.Hangs = l.figures.Hangs(row.Ref, now.Sub(since), now.Sub(row.Oldest.EnqueuedAt))
	if line.Hangs {
		line.key += hanging
	}
	return line
}

// counted returns the state of the locks whose rows must be read for the totals. The view has the
// sums of whole tenants, but not of some names.
func (s Sight) counted() string {
	if s.May == nil {
		return "contended"
	}
	return ""
}

func (t *Totals) set(sums view.Sums) {
	t.Locks, t.Held, t.Holding = sums.Locks, sums.Held, sums.Holding
}

func (t *Totals) count(row *view.Row) {
	t.Locks++
	t.Holding += row.Holding
	t.Waiting += row.Waiting
	if row.Holding > 0 {
		t.Held++
	}
	if row.Waiting > 0 {
		t.Contended++
	}
	if row.Oldest != nil &&
		(t.Oldest == nil || row.Oldest.EnqueuedAt.Before(t.Oldest.Oldest.EnqueuedAt)) {
		t.Oldest = keep(row)
	}
}
