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
	b.refresh()
	b.mu.RLock()
	defer b.mu.RUnlock()
	t := &Totals{Revision: b.revision, Now: b.now()}
	q := Query{Sort: ByWaiters, Down: true}
	first := best{most: worst, compare: q.compare}
	for _, row := range b.rows {
		if !s.Sees(row.Ref) {
			continue
		}
		t.count(row)
		if row.Waiting > 0 {
			first.add(b.line(ByWaiters, row, t.Now))
		}
	}
	t.Worst = first.take()
	return t
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
	t.oldest(row)
}

// oldest keeps the row where somebody has waited longest.
func (t *Totals) oldest(row *view.Row) {
	if row.Oldest != nil && (t.Oldest == nil || row.Oldest.EnqueuedAt.Before(t.Oldest.Oldest.EnqueuedAt)) {
		t.Oldest = row
	}
}
