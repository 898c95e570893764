package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/store"
)

// lookForLate takes up what the owner before has kept after this one had read what there is: a write can
// be executed late. Nobody else would know of it, until the next owner sent what was delivered long ago.
func (w *owner) lookForLate(after string) {
	w.writes.do(func(ctx context.Context) func() {
		page, err := w.Records.List(ctx, store.RecordQuery{Kind: owedKind(w.name), After: after})
		return func() {
			if err != nil {
				time.AfterFunc(retryPause, func() { w.bring(func() { w.lookForLate(after) }) })
				return
			}
			for _, r := range page.Records {
				if !w.knows(r) {
					w.takeLate(r.RecordKey)
				}
			}
			if page.Next != "" {
				w.lookForLate(page.Next)
			}
		}
	})
}

// knows reports whether a record is of a delivery that is pending, or was.
func (w *owner) knows(r store.Record) bool {
	f, err := readOwed(r)
	if err != nil || f.Fence == w.fence {
		return true // or the next owner counts it as missed
	}
	t := w.targets.all[targetName(r.Tenant, targetOf(r))]
	return t != nil && (t.pending[r.ID] != nil || t.leaving[r.ID] != nil)
}

// takeLate takes up a delivery that nobody knows, if it is there still: what was delivered meanwhile is not.
func (w *owner) takeLate(k store.RecordKey) {
	w.writes.do(func(ctx context.Context) func() {
		r, err := w.Records.Get(ctx, k)
		return func() {
			if err != nil || w.knows(r) {
				return
			}
			if f, err := readOwed(r); err == nil {
				w.adopt(w.target(r.Tenant, targetOf(r)), r, f)
				slices.SortStableFunc(w.late, byEvent)
				w.startLate(w.window.last)
			}
		}
	})
}
