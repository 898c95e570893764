package board

import (
	"time"

	"github.com/fencepost/fencepost/service/view"
)

// Totals are about all locks that somebody may see. An entry of several locks counts at each.
type Totals struct {
	Locks     int // in use
	Held      int // of these, and so on
	Contended int
	Holding   int // entries
	Waiting   int
	Oldest    *view.Row // where somebody has waited longest; nil if nobody waits

	Worst    []Line // those with most waiting, at most as many as asked for
	Revision uint64
	Now      time.Time
}

// Totals counts, and names the locks at which most wait.
func (b *Board) Totals(s Sight, worst int) *Totals {
	if s.May == nil && b.cold() {
		return b.firstTotals(s, worst)
	}
	all := b.look(s, "")
	defer all.done()
	t := &Totals{Now: b.now()}
	q := Query{Sort: ByWaiters, Down: true}
	first := best{most: worst, compare: q.compare}
	t.Revision = all.each(func(row *view.Row) {
		if !s.Sees(row.Ref) {
			return
		}
		t.count(row, all.keep)
		if line := b.line(ByWaiters, row, t.Now); row.Waiting > 0 && first.wants(line) {
			line.Row = all.keep(row)
			first.add(line)
		}
	})
	t.Worst = first.take()
	return t
}

func (t *Totals) count(row *view.Row, keep func(*view.Row) *view.Row) {
	t.Locks++
	t.Holding += row.Holding
	t.Waiting += row.Waiting
	if row.Holding > 0 {
		t.Held++
	}
	if row.Waiting > 0 {
		t.Contended++
	}
	if t.older(row) {
		t.Oldest = keep(row)
	}
}

// older reports whether somebody has waited longer than at all locks before.
func (t *Totals) older(row *view.Row) bool {
	return row.Oldest != nil && (t.Oldest == nil || row.Oldest.EnqueuedAt.Before(t.Oldest.Oldest.EnqueuedAt))
}
