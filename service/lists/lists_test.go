package lists_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service/lists"
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
	*view.Lists
	view   *view.View
	number uint64
	there  []*lock.Entry
}

func newFeed() *feed {
	v := view.New(view.Config{
		Events:  nobody{},
		Wall:    time.Now,
		Refusal: func() error { return nil },
		Fresh:   time.Hour,
	})
	v.Reset(store.Snapshot{})
	return &feed{Lists: &v.Lists, view: v}
}

func (f *feed) join(tenant, holder string, names ...string) *lock.Entry {
	f.number++
	e := &lock.Entry{
		ID: lock.ID(fmt.Sprintf("%026d", f.number)), Tenant: tenant, Holder: holder, Number: f.number,
		EnqueuedAt: time.Now(), WaitUntil: time.Now().Add(time.Hour), TTL: 30 * time.Second,
		Set: len(names) > 1,
	}
	for _, n := range names {
		e.Claims = append(e.Claims, lock.Claim{Name: n, Mode: lock.Exclusive})
	}
	lock.Canonical(e.Claims)
	f.view.Apply(f.number, []store.Change{{Number: f.number, Joined: e}})
	f.there = append(f.there, e)
	return e
}

func (f *feed) leave(e *lock.Entry) {
	f.number++
	f.view.Apply(f.number, []store.Change{{Number: f.number, Left: e.ID, Reason: lock.Released}})
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

func all(by lists.Sort, down bool) lists.Query {
	return lists.Query{Sort: by, Down: down, Limit: 1000}
}

func names(p *lists.Page) []string {
	out := []string{}
	for _, l := range p.Rows {
		out = append(out, l.Tenant+"/"+l.Name)
	}
	return out
}

// TestListsShowTheView: after any changes the lists agree with the queues, whatever is searched
// for, and in each order pages of any size make up the whole.
func TestListsShowTheView(t *testing.T) {
	orders := func(name string) bool { return strings.HasSuffix(name, "1") }
	for seed := range uint64(8) {
		bubble.Test(t, func(t *testing.T) {
			r, f := rand.New(rand.NewPCG(seed, 2)), newFeed()
			l := lists.New(f.Lists, f.view.Figures, time.Now)
			f.join(lock.OwnTenant, "replica", "outbox-1")
			for range r.IntN(200) {
				f.step(r)
				<-time.After(time.Duration(r.IntN(1000)) * time.Millisecond)
			}
			for _, q := range []lists.Query{
				{},
				{State: "held"},
				{State: "contended"},
				{Match: orders},
				{Holder: "worker-1"},
				{Sight: lists.Sight{Tenant: "tenant-1"}},
				{Sight: lists.Sight{Tenant: "nobody"}},
				{Sight: lists.Sight{May: orders}},
			} {
				for _, q.Sort = range lists.Sorts() {
					for _, q.Down = range []bool{false, true} {
						wantPages(t, f, l, q, 1+r.IntN(7))
					}
				}
			}
			for _, s := range []lists.Sight{{}, {Tenant: "tenant-1"}, {Tenant: "nobody"}, {May: orders}} {
				wantCounts(t, f, l, s)
			}
		})
	}
}

// rowsOf reads the rows that a query selects, by tenant and name.
func (f *feed) rowsOf(q lists.Query) (rows []view.Row) {
	f.EachRow("", "", func(row *view.Row) {
		holders := slices.Clone(row.Holders)
		switch {
		case !q.Sees(row.Ref), q.Match != nil && !q.Match(row.Name),
			q.State == "held" && len(holders) == 0, q.State == "contended" && row.Waiting == 0,
			q.Holder != "" && (len(holders) == 0 || holders[0].Entry.Holder != q.Holder):
			return
		}
		rows = append(rows, *row)
		rows[len(rows)-1].Holders = holders
	})
	return rows
}

func wantPages(t *testing.T, f *feed, l *lists.Lists, q lists.Query, limit int) {
	t.Helper()
	want, listed := f.rowsOf(q), []view.Row{}
	for i := range want {
		want[i].Newest = max(want[i].Newest, f.view.Figures.Of(want[i].Ref).Newest)
	}
	key := func(row view.Row) int64 { return sortKey(q.Sort, row) }
	last := int64(math.MinInt64)
	for q.Limit = limit; ; {
		p := l.Page(q)
		if p.Matching != len(want) || len(p.Rows) > limit || p.Revision != f.number {
			t.Fatalf("%+v: %d match, %d rows, at %d", q, p.Matching, len(p.Rows), p.Revision)
		}
		for _, line := range p.Rows {
			k := key(*line.Row)
			if q.Down {
				k = -k
			}
			if k < last {
				t.Fatalf("%+v: %s is not in order", q, line.Name)
			}
			last = k
			listed = append(listed, *line.Row)
		}
		if q.After = p.Next; q.After == nil {
			break
		}
	}
	slices.SortFunc(listed, func(a, b view.Row) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Name, b.Name))
	})
	if diff := gocmp.Diff(want, listed, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v (-want +got)\n%s", q, diff)
	}
}

// sortKey grows in an order; the orders of names and of utilization have tests of their own.
func sortKey(by lists.Sort, row view.Row) int64 {
	switch {
	case by == lists.ByWaiters:
		return int64(row.Waiting)
	case by == lists.ByOldestWait && row.Oldest != nil:
		return -row.Oldest.EnqueuedAt.UnixNano()
	case by == lists.ByHeldFor && row.Holding > 0:
		return -row.Since().UnixNano()
	case by == lists.ByOldestWait, by == lists.ByHeldFor:
		return math.MinInt64 + 1
	}
	return 0
}

func wantCounts(t *testing.T, f *feed, l *lists.Lists, s lists.Sight) {
	t.Helper()
	var want lists.Totals
	tenants := map[string]int{}
	for _, row := range f.rowsOf(lists.Query{Sight: s}) {
		tenants[row.Tenant]++
		want.Locks++
		want.Holding += row.Holding
		want.Waiting += row.Waiting
		want.Held += min(1, row.Holding)
		want.Contended += min(1, row.Waiting)
		if row.Oldest != nil &&
			(want.Oldest == nil || row.Oldest.EnqueuedAt.Before(want.Oldest.Oldest.EnqueuedAt)) {
			want.Oldest = &row
		}
	}
	got := l.Totals(s, 3)
	ignore := []gocmp.Option{
		cmpopts.EquateEmpty(), cmpopts.IgnoreFields(lists.Totals{}, "Worst", "Revision", "Now"),
	}
	if diff := gocmp.Diff(&want, got, ignore...); diff != "" {
		t.Fatalf("totals of %+v (-want +got)\n%s", s, diff)
	}
	page := l.Tenants(s, "", 100)
	for _, one := range page.Tenants {
		if one.Locks != tenants[one.Name] {
			t.Errorf("%s has %d locks, want %d", one.Name, one.Locks, tenants[one.Name])
		}
		want.Locks, want.Waiting = want.Locks-one.Locks, want.Waiting-one.Waiting
	}
	if page.All != len(tenants) || want.Locks != 0 || want.Waiting != 0 {
		t.Errorf("the tenants of %+v do not add up to the totals: %+v", s, page.Tenants)
	}
	if len(tenants) > 1 {
		if p := l.Tenants(s, "", 1); len(p.Tenants) != 1 || p.Next != page.Tenants[0].Name {
			t.Errorf("one tenant on a page: %+v", p)
		}
	}
}

// TestOrders: what is at the top of each order.
func TestOrders(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFeed()
		b := lists.New(f.Lists, f.view.Figures, time.Now)
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
			by   lists.Sort
			down bool
			want []string
		}{
			{lists.ByName, false, []string{"a/crowded", "b/long-held", "a/waits-long"}},
			{lists.ByName, true, []string{"a/waits-long", "b/long-held", "a/crowded"}},
			{lists.ByWaiters, true, []string{"a/crowded", "a/waits-long", "b/long-held"}},
			{lists.ByOldestWait, true, []string{"a/waits-long", "a/crowded", "b/long-held"}},
			{lists.ByHeldFor, true, []string{"b/long-held", "a/crowded", "a/waits-long"}},
			{lists.ByHeldFor, false, []string{"a/waits-long", "a/crowded", "b/long-held"}},
			{lists.ByUtilization, true, []string{"b/long-held", "a/crowded", "a/waits-long"}},
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
		b := lists.New(f.Lists, f.view.Figures, time.Now)
		for what, tc := range map[string]struct {
			q    lists.Query
			want []string
		}{
			"all":        {lists.Query{}, []string{"a/orders:1", "b/orders:1", "a/stock:1"}},
			"one tenant": {lists.Query{Sight: lists.Sight{Tenant: "b"}}, []string{"b/orders:1"}},
			"its replicas": {
				lists.Query{Sight: lists.Sight{Tenant: lock.OwnTenant}}, []string{lock.OwnTenant + "/outbox-1"},
			},
			"may":       {lists.Query{Sight: lists.Sight{Tenant: "a", May: orders}}, []string{"a/orders:1"}},
			"match":     {lists.Query{Match: orders}, []string{"a/orders:1", "b/orders:1"}},
			"contended": {lists.Query{State: "contended"}, []string{"a/stock:1"}},
			"holder":    {lists.Query{Holder: "w1"}, []string{"a/orders:1", "b/orders:1"}},
			"waiter":    {lists.Query{Holder: "w3"}, []string{}},
		} {
			tc.q.Sort, tc.q.Limit = lists.ByName, 10
			if diff := gocmp.Diff(tc.want, names(b.Page(tc.q))); diff != "" {
				t.Errorf("%s (-want +got)\n%s", what, diff)
			}
		}
		if got := b.Totals(lists.Sight{Tenant: "a", May: orders}, 5); got.Locks != 1 ||
			got.Waiting != 0 || got.Oldest != nil || len(got.Worst) != 0 {
			t.Errorf("totals of another's locks: %+v", got)
		}
	})
}

// BenchmarkFirstPage lists 100 000 locks, in each order.
func BenchmarkFirstPage(b *testing.B) {
	f := newFeed()
	for i := range 100_000 {
		f.join(fmt.Sprintf("tenant-%d", i%10), "w", fmt.Sprintf("lock:%d", i))
	}
	for i := range 10_000 {
		f.join(fmt.Sprintf("tenant-%d", i%10), "w", fmt.Sprintf("lock:%d", i%100))
	}
	l := lists.New(f.Lists, f.view.Figures, time.Now)
	for _, by := range lists.Sorts() {
		b.Run(string(by), func(b *testing.B) {
			for b.Loop() {
				l.Page(lists.Query{Sort: by, Down: true, Limit: 100})
			}
		})
	}
	b.Run("totals", func(b *testing.B) {
		for b.Loop() {
			l.Totals(lists.Sight{}, 5)
		}
	})
	b.Run("tenants", func(b *testing.B) {
		for b.Loop() {
			l.Tenants(lists.Sight{}, "", 100)
		}
	})
}
