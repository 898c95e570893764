// Package board keeps a row for each lock in use, of all tenants, while somebody looks, so
// that operators can sort and search them without the lock for which grants wait.
package board

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/view"
)

const (
	// Pace is the time between two drawings of the rows while somebody looks.
	Pace = 250 * time.Millisecond

	// idle is how long nobody must have looked for the rows to be dropped.
	idle = time.Minute
)

// Drawing numbers the times between two drawings. All who look within one see the same, and
// those who look at the beginning of each see everything soon.
func Drawing(at time.Time) int64 { return at.UnixNano() / int64(Pace) }

// NextDrawing is when the next one begins.
func NextDrawing(at time.Time) time.Time { return time.Unix(0, (Drawing(at)+1)*int64(Pace)) }

// Source is what the rows are of; [view.View] is.
type Source interface {
	Follow(wanted bool)
	Touched() (refs map[lock.Ref]struct{}, all bool, number uint64)
	Rows(refs []lock.Ref, give func(lock.Ref, *view.Row))
	AllRows(give func(*view.Row))
	Glance(state, tenant string, give func(*view.Row)) (number uint64)
	Names(state, tenant string, give func(lock.Ref)) (number uint64)
	Sums(tenant string) view.Sums
}

// Board has the rows. While nobody has looked for a minute it has none, and costs nothing.
// It takes about 0.4 KB for each lock in use.
type Board struct {
	source Source
	now    func() time.Time
	began  time.Time
	wake   chan struct{} // holds a value after somebody looked while there were no rows
	ready  atomic.Bool   // there are rows

	mu        sync.RWMutex
	following bool
	looked    time.Time
	drawn     time.Time // when the rows were right
	revision  uint64
	rows      []*view.Row // in no order
	place     map[lock.Ref]int
}

// New returns a board, which [Board.Run] has to empty when nobody looks any more. now tells
// the time by which entries say when they came to wait.
func New(source Source, now func() time.Time) *Board {
	return &Board{source: source, now: now, began: now(), wake: make(chan struct{}, 1)}
}

// Run draws the rows when somebody looks first, and drops them when nobody has looked for a
// minute, until ctx ends.
func (b *Board) Run(ctx context.Context) {
	defer b.drop(true)
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		b.refresh()
		select {
		case <-b.wake: // by who looked meanwhile
		default:
		}
		for followed := true; followed; {
			pause := time.NewTimer(idle / 4)
			select {
			case <-pause.C:
				followed = !b.drop(false)
			case <-ctx.Done():
				pause.Stop()
				return
			}
		}
	}
}

// drop forgets all rows if nobody looks any more, or at once.
func (b *Board) drop(now bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !now && b.now().Sub(b.looked) < idle {
		return false
	}
	if b.following {
		b.source.Follow(false)
	}
	b.ready.Store(false)
	b.following, b.rows, b.place = false, nil, nil
	return true
}

// refresh has the rows be no older than Pace.
func (b *Board) refresh() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.looked = now
	if !b.following {
		b.following = true
		b.source.Follow(true)
		b.signal()
	} else if Drawing(now) == Drawing(b.drawn) {
		return
	}
	b.draw()
	b.drawn = now
	b.ready.Store(true)
}

// draw reads what has changed.
func (b *Board) draw() {
	refs, all, number := b.source.Touched()
	if all {
		n := b.source.Sums("").Locks
		b.rows, b.place = make([]*view.Row, 0, n), make(map[lock.Ref]int, n)
		b.source.AllRows(func(row *view.Row) { b.put(row.Ref, row) })
	} else {
		list := make([]lock.Ref, 0, len(refs))
		for r := range refs {
			list = append(list, r)
		}
		b.source.Rows(list, b.put)
	}
	b.revision = number
}

// put sets or removes a row.
func (b *Board) put(r lock.Ref, row *view.Row) {
	at, known := b.place[r]
	switch {
	case row != nil && known:
		b.rows[at] = row
	case row != nil:
		b.place[r] = len(b.rows)
		b.rows = append(b.rows, row)
	case known:
		last := len(b.rows) - 1
		b.rows[at] = b.rows[last]
		b.place[b.rows[at].Ref] = at
		b.rows[last] = nil
		b.rows = b.rows[:last]
		delete(b.place, r)
	}
}
