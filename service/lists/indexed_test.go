package lists_test

import (
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
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

func (m *meanwhile) EachName(state, tenant string, give func(lock.Ref)) uint64 {
	defer m.happens("names " + state)
	return m.feed.EachName(state, tenant, give)
}

func (m *meanwhile) EachRow(state, tenant string, give func(*view.Row)) uint64 {
	defer m.happens("rows")
	return m.feed.EachRow(state, tenant, give)
}

func (m *meanwhile) Sums(tenant string) view.Sums {
	defer m.happens("sums")
	return m.feed.Sums(tenant)
}

// TestLockThatGoesDoesNotEndTheList: a lock that goes while the first page is read does not end the
// list, nor is another lock missed for it.
func TestLockThatGoesDoesNotEndTheList(t *testing.T) {
	for _, by := range []lists.Sort{lists.ByName, lists.ByWaiters, lists.ByOldestWait} {
		for _, contended := range []int{0, 3, 10, 11} {
			t.Run(
				fmt.Sprintf("%s, %d contended", by, contended), func(t *testing.T) { goesOn(t, by, contended) },
			)
		}
	}
}

func goesOn(t *testing.T, by lists.Sort, contended int) {
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
	gone := contended // by waits it is the first row without waiters
	if contended >= 10 {
		gone = 20 // there is none
	}
	b := lists.New(
		&meanwhile{f, map[string]func(){"names ": func() { f.leave(there[gone]) }}}, f.Figures, time.Now,
	)
	q := all(by, by != lists.ByName)
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
	}
	delete(want, fmt.Sprintf("a/lock:%02d", gone))
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("how often each lock was listed (-want +got)\n%s", diff)
	}
}

// TestLockIsOnAPageOnce: a lock whose waiters go while the first page is read is on it once, one at
// which others come to wait is there too, in its place, and the revision is that of the older rows.
func TestLockIsOnAPageOnce(t *testing.T) {
	for by, want := range map[lists.Sort][]string{
		lists.ByWaiters:    {"a/y", "a/x", "a/u"},
		lists.ByOldestWait: {"a/x", "a/y", "a/u"},
	} {
		bubble.Test(t, func(t *testing.T) {
			f := newFeed()
			for _, name := range []string{"x", "u", "y"} {
				f.join("a", "w", name)
			}
			waiter := f.join("a", "w2", "x")
			seen := f.number
			<-time.After(time.Second)
			b := lists.New(&meanwhile{f, map[string]func(){"rows": func() {
				f.leave(waiter)
				f.join("a", "w3", "y")
				f.join("a", "w4", "y")
			}}}, f.Figures, time.Now)
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

// TestTotalsIncludeTheirRevision: the first totals are complete up to their revision.
func TestTotalsIncludeTheirRevision(t *testing.T) {
	f := newFeed()
	f.join("a", "w", "x")
	b := lists.New(
		&meanwhile{f, map[string]func(){"sums": func() { f.join("a", "w", "y") }}}, f.Figures, time.Now,
	)
	if got := b.Totals(lists.Sight{}, 5); got.Revision != 1 || got.Locks != 1 {
		t.Errorf("%d locks at revision %d, want one at 1", got.Locks, got.Revision)
	}
}
