package board_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/board"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

type nobody struct{}

func (nobody) Begin(uint64)      {}
func (nobody) Add(lock.Event)    {}
func (nobody) Reached(uint64)    {}
func (nobody) Find(view.Finding) {}

// feed is a view and who changes it.
type feed struct {
	*view.View
	number uint64
	there  []*lock.Entry
}

func newFeed() *feed {
	v := view.New(view.Config{Events: nobody{}, Wall: time.Now, Refusal: func() error { return nil }, Fresh: time.Hour})
	v.Reset(store.Snapshot{})
	return &feed{View: v}
}

func (f *feed) join(tenant, holder string, names ...string) *lock.Entry {
	f.number++
	e := &lock.Entry{
		ID: lock.ID(fmt.Sprintf("%026d", f.number)), Tenant: tenant, Holder: holder, Number: f.number,
		EnqueuedAt: time.Now(), WaitUntil: time.Now().Add(time.Hour), TTL: 30 * time.Second, Set: len(names) > 1,
	}
	for _, n := range names {
		e.Claims = append(e.Claims, lock.Claim{Name: n, Mode: lock.Exclusive})
	}
	lock.Canonical(e.Claims)
	f.Apply(f.number, []store.Change{{Number: f.number, Joined: e}})
	f.there = append(f.there, e)
	return e
}

func (f *feed) leave(e *lock.Entry) {
	f.number++
	f.Apply(f.number, []store.Change{{Number: f.number, Left: e.ID, Reason: lock.Released}})
	f.there = slices.DeleteFunc(f.there, func(other *lock.Entry) bool { return other == e })
}

// step changes something at random.
func (f *feed) step(r *rand.Rand) {
	if len(f.there) > 0 && r.IntN(3) == 0 {
		f.leave(f.there[r.IntN(len(f.there))])
		return
	}
	name := func() string { return fmt.Sprintf("lock:%d", r.IntN(40)) }
	names := []string{name()}
	if other := name(); r.IntN(4) == 0 && other != names[0] {
		names = append(names, other)
	}
	f.join(fmt.Sprintf("tenant-%d", r.IntN(3)), fmt.Sprintf("worker-%d", r.IntN(5)), names...)
}

func all(by board.Sort, down bool) board.Query { return board.Query{Sort: by, Down: down, Limit: 1000} }

func names(p *board.Page) []string {
	out := []string{}
	for _, l := range p.Rows {
		out = append(out, l.Tenant+"/"+l.Name)
	}
	return out
}

// TestBoardFollows: after any changes the rows are those that the view has, and in each order
// pages of any size make up the whole.
func TestBoardFollows(t *testing.T) {
	for seed := range uint64(4) {
		bubble.Test(t, func(t *testing.T) {
			r, f := rand.New(rand.NewPCG(seed, 1)), newFeed()
			b := board.New(f.View, time.Now)
			b.Draw()
			for range 10 {
				for range r.IntN(30) {
					f.step(r)
					<-time.After(time.Duration(r.IntN(1000)) * time.Millisecond)
				}
				<-time.After(board.Pace)
				checkRows(t, f, b)
				for _, by := range board.Sorts() {
					checkPages(t, b, all(by, r.IntN(2) == 0), 1+r.IntN(7))
				}
			}
		})
	}
}

// checkRows holds the rows against those of the view, and the totals against the rows.
func checkRows(t *testing.T, f *feed, b *board.Board) {
	t.Helper()
	var want, got []view.Row
	var totals board.Totals
	f.AllRows(func(row *view.Row) {
		want = append(want, *row)
		totals.Locks, totals.Holding, totals.Waiting = totals.Locks+1, totals.Holding+row.Holding, totals.Waiting+row.Waiting
	})
	slices.SortFunc(want, func(a, b view.Row) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Tenant, b.Tenant))
	})
	page := b.Page(all(board.ByName, false))
	for _, l := range page.Rows {
		got = append(got, *l.Row)
	}
	if diff := gocmp.Diff(want, got, cmpopts.IgnoreUnexported(view.Use{})); diff != "" || page.Revision != f.number {
		t.Fatalf("revision %d of %d (-want +got)\n%s", page.Revision, f.number, diff)
	}
	if got := b.Totals(board.Sight{}, 5); got.Locks != totals.Locks || got.Holding != totals.Holding || got.Waiting != totals.Waiting {
		t.Fatalf("totals %+v, want %+v", got, totals)
	}
}

func checkPages(t *testing.T, b *board.Board, q board.Query, limit int) {
	t.Helper()
	whole, joined := b.Page(q), []string{}
	q.Limit = limit
	for {
		p := b.Page(q)
		joined = append(joined, names(p)...)
		if p.Matching != len(whole.Rows) || len(p.Rows) > limit {
			t.Fatalf("%d match, %d are on a page of %d, want %d", p.Matching, len(p.Rows), limit, len(whole.Rows))
		}
		if q.After = p.Next; q.After == nil {
			break
		}
	}
	if diff := gocmp.Diff(names(whole), joined); diff != "" {
		t.Fatalf("by %s, down %t, pages of %d (-want +got)\n%s", q.Sort, q.Down, limit, diff)
	}
}

// TestOrders: what is at the top of each order.
func TestOrders(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed()
		b := board.New(f.View, time.Now)
		f.join("b", "w1", "long-held")
		<-time.After(10 * time.Minute)
		f.join("a", "w2", "crowded")
		<-time.After(time.Minute)
		f.join("a", "w3", "waits-long")
		f.join("a", "w4", "waits-long")
		<-time.After(time.Minute)
		f.join("a", "w5", "crowded")
		f.join("a", "w6", "crowded")
		for _, tc := range []struct {
			by   board.Sort
			down bool
			want []string
		}{
			{board.ByName, false, []string{"a/crowded", "b/long-held", "a/waits-long"}},
			{board.ByName, true, []string{"a/waits-long", "b/long-held", "a/crowded"}},
			{board.ByWaiters, true, []string{"a/crowded", "a/waits-long", "b/long-held"}},
			{board.ByOldestWait, true, []string{"a/waits-long", "a/crowded", "b/long-held"}},
			{board.ByHeldFor, true, []string{"b/long-held", "a/crowded", "a/waits-long"}},
			{board.ByHeldFor, false, []string{"a/waits-long", "a/crowded", "b/long-held"}},
			{board.ByUtilization, true, []string{"b/long-held", "a/crowded", "a/waits-long"}},
		} {
			if diff := gocmp.Diff(tc.want, names(b.Page(all(tc.by, tc.down)))); diff != "" {
				t.Errorf("by %s, down %t (-want +got)\n%s", tc.by, tc.down, diff)
			}
		}
	})
}

// TestSelections: who sees what, and what a search finds.
func TestSelections(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed()
		f.join("a", "w1", "orders:1")
		f.join("a", "w2", "stock:1")
		f.join("a", "w3", "stock:1")
		f.join("b", "w1", "orders:1")
		f.join(lock.OwnTenant, "replica", "outbox-1")
		orders := func(name string) bool { return strings.HasPrefix(name, "orders:") }
		b := board.New(f.View, time.Now)
		for what, tc := range map[string]struct {
			q    board.Query
			want []string
		}{
			"all":          {board.Query{}, []string{"a/orders:1", "b/orders:1", "a/stock:1"}},
			"one tenant":   {board.Query{Sight: board.Sight{Tenant: "b"}}, []string{"b/orders:1"}},
			"its replicas": {board.Query{Sight: board.Sight{Tenant: lock.OwnTenant}}, []string{lock.OwnTenant + "/outbox-1"}},
			"may":          {board.Query{Sight: board.Sight{Tenant: "a", May: orders}}, []string{"a/orders:1"}},
			"match":        {board.Query{Match: orders}, []string{"a/orders:1", "b/orders:1"}},
			"contended":    {board.Query{State: "contended"}, []string{"a/stock:1"}},
			"holder":       {board.Query{Holder: "w1"}, []string{"a/orders:1", "b/orders:1"}},
			"waiter":       {board.Query{Holder: "w3"}, []string{}},
		} {
			tc.q.Sort, tc.q.Limit = board.ByName, 10
			if diff := gocmp.Diff(tc.want, names(b.Page(tc.q))); diff != "" {
				t.Errorf("%s (-want +got)\n%s", what, diff)
			}
		}
		if got := b.Totals(board.Sight{Tenant: "a", May: orders}, 5); got.Locks != 1 || got.Waiting != 0 || got.Oldest != nil || len(got.Worst) != 0 {
			t.Errorf("totals of another's locks: %+v", got)
		}
	})
}

// counting counts how often rows are asked for.
type counting struct {
	*view.View
	all, some int
	following atomic.Bool
}

func (c *counting) Follow(wanted bool) { c.following.Store(wanted); c.View.Follow(wanted) }

func (c *counting) AllRows(give func(*view.Row)) { c.all++; c.View.AllRows(give) }

func (c *counting) Rows(refs []lock.Ref, give func(lock.Ref, *view.Row)) {
	c.some += len(refs)
	c.View.Rows(refs, give)
}

// TestNobodyLooks: the rows are read once, then only what changed, at most four times a
// second, and not at all when nobody has looked for a minute.
func TestNobodyLooks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed()
		for i := range 500 {
			f.join("a", "w", fmt.Sprintf("lock:%d", i))
		}
		c := &counting{View: f.View}
		b := board.New(c, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); b.Run(ctx) }()
		synctest.Wait()
		if c.following.Load() {
			t.Error("it follows before anybody looks")
		}
		b.Draw()
		for range 100 {
			b.Page(all(board.ByWaiters, false))
		}
		f.join("a", "w", "new")
		if n := b.Page(all(board.ByWaiters, false)).Matching; n != 500 || c.all != 1 || c.some != 0 {
			t.Errorf("%d rows, read %d times and %d more, want 500 once", n, c.all, c.some)
		}
		<-time.After(board.Pace)
		if n := b.Page(all(board.ByName, false)).Matching; n != 501 || c.all != 1 || c.some != 1 {
			t.Errorf("%d rows, read %d times and %d more, want only the new one read", n, c.all, c.some)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if c.following.Load() {
			t.Error("it follows although nobody looks")
		}
		f.join("a", "w", "newer")
		b.Draw()
		if n := b.Page(all(board.ByWaiters, false)).Matching; n != 502 || c.all != 2 || !c.following.Load() {
			t.Errorf("%d rows, read %d times, want 502 anew", n, c.all)
		}
		stop()
		<-done
		if c.following.Load() {
			t.Error("it follows after its end")
		}
	})
}

// TestFirstLook: who looks first is told from the indexes what the rows would tell, while these
// are drawn for those who look next.
func TestFirstLook(t *testing.T) {
	orders := func(name string) bool { return strings.HasSuffix(name, "1") }
	for seed := range uint64(8) {
		bubble.Test(t, func(t *testing.T) {
			r, f := rand.New(rand.NewPCG(seed, 2)), newFeed()
			f.join(lock.OwnTenant, "replica", "outbox-1")
			for range r.IntN(200) {
				f.step(r)
			}
			c := &counting{View: f.View}
			warm, cold := board.New(f.View, time.Now), board.New(c, time.Now)
			warm.Draw()
			for _, q := range []board.Query{
				{},
				{State: "held"},
				{State: "contended", Down: true},
				{Match: orders},
				{Limit: 3},
				{Down: true},
				{Match: orders, Down: true},
				{Sight: board.Sight{Tenant: "tenant-1"}, Down: true},
				{Limit: 3, Down: true},
				{Sight: board.Sight{Tenant: "tenant-1"}},
				{Sight: board.Sight{Tenant: "nobody"}},
				{Sight: board.Sight{May: orders}},
				{Limit: 2, After: &board.Cursor{Ref: lock.Ref{Tenant: "tenant-1", Name: "lock:2"}}},
			} {
				q.Limit = cmp.Or(q.Limit, 1000)
				for _, q.Sort = range board.Sorts() {
					sameFirstPage(t, warm, cold, q)
				}
			}
			for i, tenant := range []string{"", "tenant-1", "nobody", lock.OwnTenant, ""} {
				s := board.Sight{Tenant: tenant}
				if i == 4 {
					s.May = orders
				}
				if diff := gocmp.Diff(warm.Tenants(s, "", 2), cold.Tenants(s, "", 2), cmpopts.IgnoreUnexported(view.Use{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("tenants of %q (-rows +a glance)\n%s", tenant, diff)
				}
				if diff := gocmp.Diff(warm.Totals(s, 3), cold.Totals(s, 3), cmpopts.IgnoreUnexported(view.Use{}, board.Line{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("totals of %q (-rows +indexes)\n%s", tenant, diff)
				}
			}
			if c.all != 0 || c.following.Load() {
				t.Errorf("all rows were read %d times", c.all)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); cold.Run(ctx) }()
			synctest.Wait()
			if cold.Page(all(board.ByName, false)); c.all != 1 || !c.following.Load() {
				t.Errorf("all rows were read %d times", c.all)
			}
			<-time.After(3 * time.Minute)
			synctest.Wait()
			if c.following.Load() || c.all != 1 {
				t.Errorf("nobody looks, and it follows; all rows were read %d times", c.all)
			}
			stop()
			<-done
		})
	}
}

// sameFirstPage holds what is told without rows against what they tell.
func sameFirstPage(t *testing.T, warm, cold *board.Board, q board.Query) {
	t.Helper()
	for {
		want, got := warm.Page(q), cold.Page(q)
		if diff := gocmp.Diff(want, got, cmpopts.IgnoreUnexported(view.Use{}, board.Line{}), cmpopts.IgnoreFields(board.Page{}, "Looked"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%+v (-rows +a glance)\n%s", q, diff)
		}
		if q.After = got.Next; q.After == nil {
			return
		}
	}
}

// TestMoreChangesThanAreRemembered: all rows are read anew then.
func TestMoreChangesThanAreRemembered(t *testing.T) {
	f := newFeed()
	c := &counting{View: f.View}
	now := time.Now()
	b := board.New(c, func() time.Time { return now })
	b.Draw()
	const many = 50_001
	for i := range many {
		f.join("a", "w", fmt.Sprintf("lock:%d", i))
	}
	now = now.Add(board.Pace)
	if n := b.Page(all(board.ByName, false)).Matching; n != many || c.all != 2 || c.some != 0 {
		t.Errorf("%d rows, read %d times and %d more, want %d read anew", n, c.all, c.some, many)
	}
}

// BenchmarkFirstPage is of 100 000 locks, each order in its turn.
func BenchmarkFirstPage(b *testing.B) {
	f := newFeed()
	for i := range 100_000 {
		f.join(fmt.Sprintf("tenant-%d", i%10), "w", fmt.Sprintf("lock:%d", i))
	}
	for i := range 10_000 {
		f.join(fmt.Sprintf("tenant-%d", i%10), "w", fmt.Sprintf("lock:%d", i%100))
	}
	one := board.New(f.View, time.Now)
	one.Draw()
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			board.New(f.View, time.Now).Page(board.Query{Sort: board.ByName, Limit: 100})
		}
	})
	b.Run("cold totals", func(b *testing.B) {
		for b.Loop() {
			board.New(f.View, time.Now).Totals(board.Sight{}, 5)
		}
	})
	b.Run("drawing all", func(b *testing.B) {
		for b.Loop() {
			board.New(f.View, time.Now).Draw()
		}
	})
	for _, by := range board.Sorts() {
		b.Run("cold by "+string(by), func(b *testing.B) {
			for b.Loop() {
				board.New(f.View, time.Now).Page(board.Query{Sort: by, Down: true, Limit: 100})
			}
		})
		b.Run(string(by), func(b *testing.B) {
			for b.Loop() {
				one.Page(board.Query{Sort: by, Down: true, Limit: 100})
			}
		})
	}
	b.Run("totals", func(b *testing.B) {
		for b.Loop() {
			one.Totals(board.Sight{}, 5)
		}
	})
}

// changing is a view in which somebody joins whenever its rows are read.
type changing struct{ *feed }

func (c changing) AllRows(give func(*view.Row)) {
	c.feed.AllRows(give)
	c.join("acme", "w", fmt.Sprint("late-", c.number))
}

// TestRevisionOfRows: the revision is no newer than the rows, and what changes while they are
// read is there the next time.
func TestRevisionOfRows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed()
		f.join("acme", "w", "early")
		b := board.New(changing{f}, time.Now)
		b.Draw()
		if p := b.Page(all(board.ByWaiters, false)); p.Revision != 1 || len(p.Rows) != 1 {
			t.Errorf("%d rows of revision %d, want one of 1", len(p.Rows), p.Revision)
		}
		<-time.After(board.Pace)
		if p := b.Page(all(board.ByWaiters, false)); p.Revision != 2 || len(p.Rows) != 2 {
			t.Errorf("%d rows of revision %d, want two of 2", len(p.Rows), p.Revision)
		}
	})
}
