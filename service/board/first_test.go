package board_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/board"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// meanwhile is a source in which something happens once, after a kind of read.
type meanwhile struct {
	*feed
	after map[string]func()
}

func (m *meanwhile) happens(after string) {
	if do := m.after[after]; do != nil {
		delete(m.after, after)
		do()
	}
}

func (m *meanwhile) Names(state, tenant string, give func(lock.Ref)) uint64 {
	defer m.happens("names " + state)
	return m.feed.Names(state, tenant, give)
}

func (m *meanwhile) Glance(state, tenant string, give func(*view.Row)) uint64 {
	defer m.happens("glance")
	return m.feed.Glance(state, tenant, give)
}

func (m *meanwhile) Sums(tenant string) view.Sums {
	defer m.happens("sums")
	return m.feed.Sums(tenant)
}

// TestFirstLookGoesOn: a lock that goes while the first page is read does not end the list, nor
// is another lock missed for it.
func TestFirstLookGoesOn(t *testing.T) {
	for _, by := range []board.Sort{board.ByName, board.ByWaiters, board.ByOldestWait} {
		for _, contended := range []int{0, 3, 10, 11} {
			t.Run(fmt.Sprintf("%s, %d contended", by, contended), func(t *testing.T) { goesOn(t, by, contended) })
		}
	}
}

// TestLooked: a page says at how many locks of the tenant it looked, on the board or before there is one.
func TestLooked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed()
		for i := range 30 {
			f.join("a", "w", fmt.Sprint("n", i))
			f.join("b", "w", fmt.Sprint("n", i))
		}
		f.join("a", "w2", "n0")
		for _, by := range []board.Sort{board.ByName, board.ByWaiters, board.ByHeldFor} {
			q := all(by, by != board.ByName)
			q.Tenant, q.Limit, q.Match = "a", 2, func(string) bool { return false }
			b := board.New(f, time.Now)
			if n := b.Page(q).Looked; n != 30 {
				t.Errorf("the first page by %s looks at %d", by, n)
			}
			ctx, stop := context.WithCancel(t.Context())
			go b.Run(ctx)
			synctest.Wait()
			if n := b.Page(q).Looked; n != 30 {
				t.Errorf("a page by %s looks at %d", by, n)
			}
			stop()
		}
	})
}

func goesOn(t *testing.T, by board.Sort, contended int) {
	f := newFeed()
	var there []*lock.Entry
	want := map[string]int{}
	for i := range 50 {
		name := fmt.Sprintf("lock:%02d", i)
		there = append(there, f.join("a", "w", name))
		want["a/"+name] = 1
		if i < contended {
			f.join("a", "w2", name)
		}
	}
	gone := contended // by waits it is the first on the page for which nobody waits
	if contended >= 10 {
		gone = 20 // there is none
	}
	b := board.New(&meanwhile{f, map[string]func(){"names ": func() { f.leave(there[gone]) }}}, time.Now)
	q := all(by, by != board.ByName)
	q.Limit = 10
	got := map[string]int{}
	for {
		p := b.Page(q)
		for _, n := range names(p) {
			got[n]++
		}
		if q.After = p.Next; q.After == nil {
			break
		}
		b.Draw()
	}
	delete(want, fmt.Sprintf("a/lock:%02d", gone))
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("how often each lock was listed (-want +got)\n%s", diff)
	}
}

// TestFirstLookOfMany: of more locks than are read at a time each has its own row.
func TestFirstLookOfMany(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed()
		for i := range 700 {
			f.join("a", fmt.Sprint("w", i), fmt.Sprintf("lock:%03d", i))
		}
		warm, cold := board.New(f.View, time.Now), board.New(f.View, time.Now)
		warm.Draw()
		sameFirstPage(t, warm, cold, all(board.ByHeldFor, true))
	})
}

// TestFirstLookListsOnce: a lock whose waiters go while the first page is read is on it once, one at
// which others come to wait is there too, in its place, and the revision is that of the older rows.
func TestFirstLookListsOnce(t *testing.T) {
	for by, want := range map[board.Sort][]string{
		board.ByWaiters:    {"a/y", "a/x", "a/u"},
		board.ByOldestWait: {"a/x", "a/y", "a/u"},
	} {
		bubble.Test(t, func(t *testing.T) {
			f := newFeed()
			for _, name := range []string{"x", "u", "y"} {
				f.join("a", "w", name)
			}
			waiter := f.join("a", "w2", "x")
			seen := f.number
			<-time.After(time.Second)
			b := board.New(&meanwhile{f, map[string]func(){"glance": func() {
				f.leave(waiter)
				f.join("a", "w3", "y")
				f.join("a", "w4", "y")
			}}}, time.Now)
			p := b.Page(all(by, true))
			if diff := gocmp.Diff(want, names(p)); diff != "" || p.Matching != 3 || p.Next != nil {
				t.Errorf("by %s: %d match, next %v (-want +got)\n%s", by, p.Matching, p.Next, diff)
			}
			if p.Revision != seen {
				t.Errorf("by %s: revision %d, but some rows are of %d", by, p.Revision, seen)
			}
		})
	}
}

// TestRevisionOfFirstTotals: the first totals are complete up to their revision.
func TestRevisionOfFirstTotals(t *testing.T) {
	f := newFeed()
	f.join("a", "w", "x")
	b := board.New(&meanwhile{f, map[string]func(){"sums": func() { f.join("a", "w", "y") }}}, time.Now)
	if got := b.Totals(board.Sight{}, 5); got.Revision != 1 || got.Locks != 1 {
		t.Errorf("%d locks at revision %d, want one at 1", got.Locks, got.Revision)
	}
}

// TestFirstLookHasRowsDrawn: whatever is looked at first, the rows are drawn once for who looks next.
func TestFirstLookHasRowsDrawn(t *testing.T) {
	one := board.Sight{Tenant: "a", May: func(string) bool { return true }}
	for what, look := range map[string]func(*board.Board){
		"by name":        func(b *board.Board) { b.Page(all(board.ByName, false)) },
		"by waiters":     func(b *board.Board) { b.Page(all(board.ByWaiters, true)) },
		"by held for":    func(b *board.Board) { b.Page(all(board.ByHeldFor, true)) },
		"totals":         func(b *board.Board) { b.Totals(board.Sight{}, 5) },
		"totals of some": func(b *board.Board) { b.Totals(one, 5) },
		"tenants":        func(b *board.Board) { b.Tenants(one, "", 5) },
	} {
		bubble.Test(t, func(t *testing.T) {
			f := newFeed()
			f.join("a", "w", "x")
			c := &counting{View: f.View}
			b := board.New(c, time.Now)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); b.Run(ctx) }()
			synctest.Wait()
			look(b)
			synctest.Wait()
			if c.all != 1 {
				t.Errorf("%s: all rows were drawn %d times, want once", what, c.all)
			}
			stop()
			<-done
		})
	}
}

// TestNobodyWaitsForWhatMayBeSeen: to say of a name whether somebody may see it may take long. Others have the
// rows drawn and look at them meanwhile.
func TestNobodyWaitsForWhatMayBeSeen(t *testing.T) {
	f := newFeed()
	f.join("a", "w", "one")
	f.join("a", "w", "two")
	f.join("b", "w", "three")
	b := board.New(f.View, time.Now)
	b.Draw()
	asked, waited := 0, false
	may := func(string) bool {
		asked++
		others := make(chan struct{})
		go func() {
			defer close(others)
			b.Draw()
		}()
		select {
		case <-others:
		case <-time.After(5 * time.Second):
			waited = true
		}
		return asked > 1
	}
	page := b.Page(board.Query{Sight: board.Sight{Tenant: "a", May: may}, Sort: board.ByWaiters, Limit: 10})
	if len(page.Rows) != 1 || asked != 2 || waited {
		t.Errorf("%d rows, asked of %d names, and the drawing waits for that: %v", len(page.Rows), asked, waited)
	}
}
