package handlers_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/test/poll"
)

// TestUnusedLockHasEmptyLists: a look at an unused lock has empty lists.
func TestUnusedLockHasEmptyLists(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, query := range []string{"", "?consistent=true", "?consistent=false"} {
		var v lockView
		c.get("/locks/orders:42"+query).want(http.StatusOK, &v)
		want := lockView{
			Name: "orders:42", Holders: []holder{}, Waiters: []waiter{}, Waiting: ptr(0),
			Figures: figures{Acquisitions: ptr(uint64(0)), Expirations: ptr(uint64(0))},
		}
		if diff := cmp.Diff(want, v, cmpopts.IgnoreFields(lockView{}, "Revision")); diff != "" {
			t.Errorf("%q (-want +got)\n%s", query, diff)
		}
		if v.Revision == 0 {
			t.Errorf("%q: no revision", query)
		}
	}
}

func TestLookShowsHoldersAndWaiters(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	a := c.post("/locks/orders:42", body(`{"holder":"first","metadata":{"job":"7"}}`))
	first := a.held(http.StatusCreated)
	c.join("orders:42", body(`{"wait_seconds":60,"holder":"second","metadata":{"job":"8"}}`))
	c.join("orders:42", body(`{"wait_seconds":60,"holder":"third"}`))
	v := c.look("orders:42")
	checkInTheWay(t, a, first, refusal{v.Holders, v.Waiting}, 2)
	want := []waiter{
		{Position: 1, Holder: "second", Mode: "exclusive", Metadata: map[string]string{"job": "8"}},
		{Position: 2, Holder: "third", Mode: "exclusive"},
	}
	if diff := cmp.Diff(
		want, v.Waiters, cmpopts.IgnoreFields(waiter{}, "EnqueuedAt", "WaitedSeconds"),
	); diff != "" {
		t.Errorf("waiters (-want +got)\n%s", diff)
	}
	if v.Name != "orders:42" || v.Fence != *first.Fence || v.Revision < *first.Fence ||
		*v.Figures.Acquisitions != 1 {
		t.Errorf("GET orders:42 = %+v, want fence %d and a revision from there on", v, *first.Fence)
	}
	if strings.Contains(string(c.get("/locks/orders:42").body), first.Token) {
		t.Error("a token is shown to those who look")
	}
}

// TestAdviceOfOneHold: what is too little to go by is counted in words.
func TestAdviceOfOneHold(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, want := range []string{"1 hold has ended since", "2 holds have ended since"} {
		c.release(c.acquire("orders:42"))
		poll.Until(t, want, func() bool {
			return strings.Contains(
				string(c.operator().get("/admin/locks/"+c.claims.Tenant+"/orders:42").body), want,
			)
		})
	}
}

// TestFiguresAdviseAfterTenHolds: they count, and after ten acquisitions they advise.
func TestFiguresAdviseAfterTenHolds(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	var last entry
	for range 5 {
		first := c.acquire("orders:42")
		next := c.join("orders:42")
		if advice := c.look("orders:42").Figures.RecommendedTTLSeconds; advice != nil {
			t.Errorf("the TTL %v is recommended too early", *advice)
		}
		c.release(first)
		last = next.wait().held(http.StatusCreated)
		c.release(last)
	}
	v := c.look("orders:42")
	if f := v.Figures; *f.Acquisitions != 10 || *f.Expirations != 0 ||
		f.RecommendedTTLSeconds == nil || *f.RecommendedTTLSeconds < 2 {
		t.Errorf("figures = %+v, want 10 acquisitions and a recommended TTL of 2 s or more", f)
	}
	for name, p := range map[string]*percentiles{
		"wait": v.Figures.WaitSeconds, "hold": v.Figures.HoldSeconds,
	} {
		if p == nil || p.P50 == nil || p.P90 == nil || p.P99 == nil || *p.P50 > *p.P90 ||
			*p.P90 > *p.P99 || *p.P99 == 0 {
			t.Errorf("%s_seconds = %+v, want them to grow", name, p)
		}
	}
	if v.Fence != *last.Fence || len(v.Holders) != 0 {
		t.Errorf("%+v, want a free lock whose newest fence is %d", v, *last.Fence)
	}
}

// TestConsistentLookSeesEarlierAnswers: a consistent look contains every entry that any replica has
// answered before.
func TestConsistentLookSeesEarlierAnswers(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for i := range 30 {
		name := fmt.Sprintf("orders:%d", i)
		e := c.at(shared.brief).acquire(name)
		if v := c.look(name); len(v.Holders) != 1 || v.Holders[0].Fence != *e.Fence ||
			v.Revision < *e.Fence {
			t.Fatalf("%+v does not have the holder with fence %d", v, *e.Fence)
		}
		if p := c.list("consistent=true&prefix=" + name); len(p.Locks) == 0 || p.Revision < *e.Fence {
			t.Fatalf("%+v does not have %s with fence %d", p, name, *e.Fence)
		}
	}
}

func (c *client) list(query string) page {
	c.t.Helper()
	var p page
	c.get("/locks?"+query).want(http.StatusOK, &p)
	if p.Locks == nil || p.Revision == 0 {
		c.t.Fatalf("GET /locks?%s = %+v, want locks and a revision", query, p)
	}
	return p
}

func (p page) names() []string {
	names := []string{}
	for _, l := range p.Locks {
		names = append(names, l.Name)
	}
	return names
}

// listing is a tenant with locks of each kind: c and d are waited for.
func listing(t *testing.T) *client {
	t.Helper()
	c := newTenant(t)
	for _, name := range []string{"orders:1", "orders:2", "orders:10", "a", "b", "c", "d", "Z"} {
		c.acquire(name, body(`{"ttl_seconds":600}`))
	}
	c.join("c")
	c.join("d")
	c.join("d")
	c.list("consistent=true")
	return c
}

func TestListIsSelectedAndSorted(t *testing.T) {
	t.Parallel()
	c := listing(t)
	cases := map[string][]string{
		"":                         {"Z", "a", "b", "c", "d", "orders:1", "orders:10", "orders:2"},
		"prefix=":                  {"Z", "a", "b", "c", "d", "orders:1", "orders:10", "orders:2"},
		"prefix=orders:":           {"orders:1", "orders:10", "orders:2"},
		"prefix=orders:1":          {"orders:1", "orders:10"},
		"prefix=orders%3A10":       {"orders:10"},
		"prefix=nothing":           {},
		"state=held":               {"Z", "a", "b", "c", "d", "orders:1", "orders:10", "orders:2"},
		"state=contended":          {"c", "d"},
		"state=contended&prefix=d": {"d"},
		"state=contended&prefix=a": {},
		"limit=2":                  {"Z", "a"},
		"limit=1000": {
			"Z", "a", "b", "c", "d", "orders:1", "orders:10", "orders:2",
		},
		"limit=1&state=contended":          {"c"},
		"limit=3&prefix=o&consistent=true": {"orders:1", "orders:10", "orders:2"},
	}
	for query, want := range cases {
		if diff := cmp.Diff(want, c.list(query).names()); diff != "" {
			t.Errorf("GET /locks?%s (-want +got)\n%s", query, diff)
		}
	}
	got := c.list("prefix=d").Locks[0]
	if got.State != "contended" || *got.Waiting != 2 || len(got.Holders) != 1 ||
		got.Holders[0].Fence != got.Fence || got.Holders[0].Holder != "worker-1" {
		t.Errorf("d = %+v, want a holder and two waiters", got)
	}
	if got := c.list("prefix=a").Locks[0]; got.State != "held" || *got.Waiting != 0 {
		t.Errorf("a = %+v, want it held", got)
	}
}

// TestPagesAreTheWholeList: pages together are the list, each lock once, in byte order.
func TestPagesAreTheWholeList(t *testing.T) {
	t.Parallel()
	c := listing(t)
	for query, want := range map[string][]string{
		"":                {"Z", "a", "b", "c", "d", "orders:1", "orders:10", "orders:2"},
		"prefix=orders":   {"orders:1", "orders:10", "orders:2"},
		"state=contended": {"c", "d"},
	} {
		for limit := 1; limit <= len(want)+1; limit++ {
			pages := c.pages(query, limit)
			if got := slices.Concat(pages...); !slices.Equal(got, want) {
				t.Errorf("%q in pages of %d: %v, want %v", query, limit, got, want)
			}
			if due := (len(want) + limit - 1) / limit; len(pages) != due {
				t.Errorf("%q in pages of %d: %d pages, want %d", query, limit, len(pages), due)
			}
		}
	}
	cursor := c.list("limit=3").NextCursor // a lock that is gone is no obstacle
	c.release(c.acquire("bb"))
	if got := c.list("limit=1&consistent=true&cursor=" + cursor).names(); !slices.Equal(
		got, []string{"c"},
	) {
		t.Errorf("the page after b is %v", got)
	}
}

func (c *client) pages(query string, limit int) [][]string {
	c.t.Helper()
	var pages [][]string
	for cursor := ""; ; {
		p := c.list(fmt.Sprintf("%s&limit=%d%s", query, limit, cursor))
		pages = append(pages, p.names())
		if p.NextCursor == "" || len(pages) > 20 {
			return pages
		}
		cursor = "&cursor=" + url.QueryEscape(p.NextCursor)
	}
}

// TestListIsFiltered: locks that the bearer token may not use are not there, on
// any page.
func TestListIsFiltered(t *testing.T) {
	t.Parallel()
	c := listing(t)
	cases := map[string]struct{ patterns, want []string }{
		"Prefix":  {[]string{"orders:*"}, []string{"orders:1", "orders:10", "orders:2"}},
		"Suffix":  {[]string{"*1"}, []string{"orders:1"}},
		"Exact":   {[]string{"a", "Z"}, []string{"Z", "a"}},
		"Several": {[]string{"orders:1*", "c"}, []string{"c", "orders:1", "orders:10"}},
		"All": {
			[]string{"*"}, []string{"Z", "a", "b", "c", "d", "orders:1", "orders:10", "orders:2"},
		},
		"None": {[]string{}, nil},
	}
	for name, tc := range cases {
		limited := c.as(func(cl *auth.Claims) { cl.Locks = tc.patterns })
		for _, limit := range []int{1, 2, 100} {
			if got := slices.Concat(limited.pages("", limit)...); !slices.Equal(got, tc.want) {
				t.Errorf("%s in pages of %d: %v, want %v", name, limit, got, tc.want)
			}
		}
	}
}

// TestListOverThousandLocks: more locks than the replica looks at in one go.
func TestListOverThousandLocks(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	const many = 1100
	want := make([]string, many)
	for i := range want {
		want[i] = fmt.Sprintf("orders:%04d", i)
	}
	for chunk := range slices.Chunk(want, 50) {
		var all []*pending
		for _, name := range chunk {
			all = append(all, c.start("POST", "/locks/"+name, body(`{"ttl_seconds":600}`)))
		}
		for _, p := range all {
			p.wait().held(http.StatusCreated)
		}
	}
	c.list("consistent=true")
	if p := c.list("limit=1000"); !slices.Equal(p.names(), want[:1000]) || p.NextCursor == "" {
		t.Errorf("the first page has %d locks and the cursor %q", len(p.Locks), p.NextCursor)
	}
	if p := c.list(""); len(p.Locks) != 100 || p.NextCursor == "" {
		t.Errorf(
			"a page has %d locks by default, and the cursor %q; want 100", len(p.Locks), p.NextCursor,
		)
	}
	last := c.within("orders:1099")
	if p := last.list(""); !slices.Equal(p.names(), want[1099:]) || p.NextCursor != "" {
		t.Errorf("the last lock alone: %v and the cursor %q", p.names(), p.NextCursor)
	}
}

func TestBadListsAreRefused(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	limit := invalid("limit", "must be a whole number from 1 to 1000")
	noCursor := invalid("cursor", "must be the next_cursor of a page of this list; "+
		"leave it out to begin again")
	prefix := invalid("prefix", "must be how a lock name begins: a letter or digit, then also . _ "+
		": @ = + -")
	consistent := invalid("consistent", "must be true or false")
	cases := map[string]problem{
		"limit=0": limit, "limit=-1": limit, "limit=1001": limit, "limit=1.5": limit, "limit=x": limit,
		"limit=+":   limit,
		"limit=1e2": limit, "limit=99999999999999999999": limit, "limit=0x10": limit,
		"limit=%F0%9F%94%92": limit, "limit=NaN": limit,
		"cursor=x": noCursor, "cursor=%00": noCursor, "cursor=orders:1": noCursor,
		"cursor=" + strings.Repeat("A", 5000): noCursor,
		"cursor=" + cursor("orders:1"):        noCursor, "cursor=" + cursor("locks|"): noCursor,
		"cursor=" + cursor("locks|a/b"):    noCursor,
		"cursor=" + cursor("locks|a\x00b"): noCursor, "cursor=" + cursor("locks|-a"): noCursor,
		"cursor=" + cursor("locks|a") + "=":                   noCursor,
		"cursor=" + cursor("locks|"+strings.Repeat("a", 201)): noCursor,
		"cursor=" + cursor("LOCKS|a"):                         noCursor,
		"cursor=" + cursor("locks|ä"):                         noCursor,
		"cursor=%20" + cursor("locks|a"):                      noCursor,
		"cursor=null":                                         noCursor,
		"prefix=-":                                            prefix, "prefix=%2F": prefix,
		"prefix=a%2Fb": prefix, "prefix=a+b": prefix,
		"prefix=%C3%A4": prefix,
		"prefix=*": invalid(
			"prefix", "is the beginning of names: leave out the star",
		),
		"prefix=" + strings.Repeat("a", 201): prefix, "prefix=%00": prefix, "prefix=..": prefix,
		"state=":               invalid("state", "must be held or contended"),
		"state=x":              invalid("state", "must be held or contended"),
		"state=HELD":           invalid("state", "must be held or contended"),
		"state=free":           invalid("state", "must be held or contended"),
		"state=held,contended": invalid("state", "must be held or contended"),
		"consistent=1":         consistent, "consistent=yes": consistent, "consistent=TRUE": consistent,
		"consistent=": consistent,
	}
	for query, want := range cases {
		c.get("/locks?" + query).wantProblem(want)
	}
	for _, query := range []string{"consistent=1", "consistent=", "consistent=x"} {
		c.get("/locks/orders:42?" + query).wantProblem(consistent)
	}
}
