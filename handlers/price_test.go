package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock/quota"
	"github.com/fencepost/fencepost/service/quotas"
)

// priceMeter notes what requests cost.
type priceMeter struct {
	handlers.Quotas
	price atomic.Int64
}

func (c *priceMeter) Take(tenant string, l quota.Limit) error {
	c.price.Add(1)
	return c.Quotas.Take(tenant, l)
}

func (c *priceMeter) Charge(tenant string, l quota.Limit, more int) error {
	c.price.Add(int64(more))
	return c.Quotas.Charge(tenant, l, more)
}

func (c *priceMeter) Owe(tenant string, l quota.Limit, more int) {
	c.price.Add(int64(more))
	c.Quotas.Owe(tenant, l, more)
}

// withPriceMeter is a replica that tells what requests cost.
func withPriceMeter(t *testing.T) (*priceMeter, *replica) {
	t.Helper()
	q := &priceMeter{Quotas: shared.quotas}
	h := shared.handlers(shared.main.service)
	h.Quotas, h.Deliveries = q, &stubDeliveries{}
	r := serve(nil, handlers.New(h))
	t.Cleanup(r.close)
	return q, r
}

// TestPriceOfRequests: a set costs what its locks cost, bytes what there is to read and tell, a list of
// webhooks what the store is asked. Renewals and releases cost one, and operators' requests nothing, but what those of a tenant look at.
func TestPriceOfRequests(t *testing.T) {
	t.Parallel()
	q, r := withPriceMeter(t)
	owner := newTenant(t).as(func(cl *auth.Claims) { cl.Scopes = append(cl.Scopes, auth.WebhooksWrite) })
	owner.limits(`{"requests_per_second":1000000}`)
	e := owner.acquire("a")
	for range 20 {
		owner.post("/locks/many", body(muchNoted("shared"))).wantStatus(http.StatusCreated)
	}
	for range 2 {
		owner.post("/webhooks", body(`{"url":"https://example.org/told","events":["*"]}`)).wantStatus(http.StatusCreated)
	}
	c := owner.at(r)
	costs := func(what string, want int, a *answer) {
		t.Helper()
		if got := int(q.price.Swap(0)); got != want || a.status >= http.StatusInternalServerError {
			t.Errorf("%s costs %d, want %d: %d", what, got, want, a.status)
		}
	}
	costs("an acquire", 1, c.post("/locks/one", body(`{}`)))
	costs("a set of 32", 32, c.post("/locksets", body(locksOf(names(32)...))))
	costs("a set of one", 1, c.post("/locksets", body(locksOf("alone"))))
	costs("a body and an answer of 2 KB each", 2, c.post("/locks/noted", body(muchNoted("exclusive"))))
	long := c.get("/locks/many?consistent=true")
	costs("a lock with much metadata", 1+len(long.body)/4096, long)
	if len(long.body) < 40_000 {
		t.Errorf("it is %d bytes long", len(long.body))
	}
	refused := c.post("/locks/many", body(`{}`))
	costs("a refusal that names holders", 1+(2+len(refused.body))/4096, refused)
	costs("webhooks", 3, c.get("/webhooks"))
	costs("a renewal", 1, c.put("/locks/a/renew", lockToken(e.Token)))
	var noted entry
	noteworthy := fmt.Sprintf(`{"ttl_seconds":600,"metadata":{"k":%q}}`, strings.Repeat("\n", 2000)) // two bytes each in an answer
	owner.post("/locks/noteworthy", body(noteworthy)).want(http.StatusCreated, &noted)
	renewal := c.put("/locks/noteworthy/renew", lockToken(noted.Token))
	costs("a renewal of what is much", 1, renewal)
	if len(renewal.body) < 4096 {
		t.Errorf("it is answered with %d bytes", len(renewal.body))
	}
	costs("a release", 1, c.delete("/locks/a", lockToken(e.Token)))
	costs("a list of a tenant's operator", 1, c.operator().get("/admin/deadlocks"))
	costs("an operator's list", 0, c.admin().get("/admin/deadlocks"))
}

// TestPriceOfNarrowLists: who may see few of many locks pays for looking at all.
func TestPriceOfNarrowLists(t *testing.T) {
	t.Parallel()
	q, r := withPriceMeter(t)
	owner := newTenant(t)
	for i := range 2016 / 32 {
		var all []string
		for j := range 32 {
			all = append(all, fmt.Sprintf("n%02d-%02d", i, j))
		}
		owner.post("/locksets", body(locksOf(all...))).wantStatus(http.StatusCreated)
	}
	expect := func(patterns []string, query string, want int64) {
		t.Helper()
		q.price.Store(0)
		var page api.LockPage
		narrow := owner.at(r).as(func(cl *auth.Claims) { cl.Locks = patterns })
		narrow.get("/locks?consistent=true"+query).want(http.StatusOK, &page)
		if got := q.price.Load(); got != want || len(page.Locks) > 0 {
			t.Errorf("%q costs %d, want %d, and shows %d", query, got, want, len(page.Locks))
		}
	}
	expect([]string{"orders:*"}, "", 3)
	expect([]string{"orders:*"}, "&prefix=orders", 1)
	expect([]string{"orders:*"}, "&prefix=n0", 1)
	expect(slices.Repeat([]string{"*n*0*-*1*x*"}, 100), "", 1+2016*76/1000) // 6 texts each, 8 of which take as long as a look
}

// TestPriceOfCrowds: who lists locks that many hold pays for finding them, and no more where each has one holder.
func TestPriceOfCrowds(t *testing.T) {
	t.Parallel()
	q, r := withPriceMeter(t)
	owner := newTenant(t)
	for i := range 60 {
		owner.post("/locksets", body(locksOf(fmt.Sprintf("alone%02d-a", i), fmt.Sprintf("alone%02d-b", i)))).wantStatus(http.StatusCreated)
		owner.post("/locks/many", body(`{"mode":"shared"}`)).wantStatus(http.StatusCreated)
	}
	for query, more := range map[string]int{"&prefix=alone": 0, "&prefix=many": 1} {
		q.price.Store(0)
		page := owner.at(r).get("/locks?limit=1000&consistent=true" + query)
		if got, want := int(q.price.Load()), 1+len(page.body)/4096+more; got != want || page.status != http.StatusOK {
			t.Errorf("%q costs %d, want %d: %d", query, got, want, page.status)
		}
	}
}

// TestPriceOfWaits: who waits behind a long chain of named holders pays for having it searched for a deadlock, and nobody else.
func TestPriceOfWaits(t *testing.T) {
	t.Parallel()
	q, r := withPriceMeter(t)
	owner := newTenant(t)
	const length = 60
	for i := range length {
		owner.post(fmt.Sprint("/locks/l", i), body(fmt.Sprintf(`{"holder":"c%d","ttl_seconds":600}`, i))).wantStatus(http.StatusCreated)
	}
	for i := range length - 1 {
		owner.post(fmt.Sprint("/locks/l", i+1), body(fmt.Sprintf(`{"holder":"c%d","async":true,"wait_seconds":600}`, i))).wantStatus(http.StatusAccepted)
	}
	owner.post("/locks/x", body(`{"holder":"outside","ttl_seconds":600}`)).wantStatus(http.StatusCreated)
	owner.post("/locks/x", body(`{"async":true,"wait_seconds":600}`)).wantStatus(http.StatusAccepted)
	c := owner.at(r)
	c.get("/locks/l0?consistent=true") // this replica has seen them too
	costs := func(text string, status int) int {
		t.Helper()
		q.price.Store(0)
		c.post("/locks/l0", body(text)).wantStatus(status)
		return int(q.price.Load())
	}
	if n := costs(`{"wait_seconds":0.05}`, http.StatusLocked); n != 1 {
		t.Errorf("without a name it costs %d", n)
	}
	if n := costs(`{"wait_seconds":0.05,"holder":"outside"}`, http.StatusLocked); n < 1+length/40 || n > 20 {
		t.Errorf("to wait behind a long chain costs %d", n)
	}
	if n := costs(`{"wait_seconds":0.05,"holder":"c57"}`, http.StatusConflict); n < 1+length/40 || n > 20 {
		t.Errorf("to close a long cycle costs %d", n)
	}
}

// TestOwing: who has asked for something dear is refused until that is paid for, and renews and
// releases meanwhile. What costs more than may be used at once can be had.
func TestOwing(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("a")
	c.limits(`{"requests_per_second":1}`)
	within(t, 60*time.Second, "the set is taken", func() bool { return c.post("/locksets", body(locksOf(names(32)...))).status == http.StatusCreated })
	a := c.post("/locks/c", body(`{}`))
	if used, _ := strconv.Atoi(fmt.Sprint(a.fields()["used"])); a.status != http.StatusTooManyRequests || used < 2 || used > 32 {
		t.Errorf("the next is answered %v", a)
	}
	if after, _ := strconv.Atoi(a.header.Get("Retry-After")); after < 2 || after > 32 {
		t.Errorf("it may come again after %d s", after)
	}
	c.put("/locks/a/renew", lockToken(e.Token)).wantStatus(http.StatusOK)
	c.release(e)
	newTenant(t).acquire("a")
}

// TestLargeAnswersTakeTurns: a large answer is made when the one before is, and a small one at once.
func TestLargeAnswersTakeTurns(t *testing.T) {
	t.Parallel()
	c, router := overRouter(t, &stub{page: largePage()}, asIs)
	done := router.TakeTurn(c.claims.Tenant)
	p := c.start("GET", "/locks")
	eventually(t, "it waits for its turn", func() bool { return router.Turns(c.claims.Tenant) == 2 })
	c.get("/healthz").wantStatus(http.StatusOK)
	if p.answered() {
		t.Error("it is answered before its turn")
	}
	done()
	if a := p.wait(); a.status != http.StatusOK {
		t.Errorf("%d", a.status)
	}
	eventually(t, "its turn is over", func() bool { return router.Turns(c.claims.Tenant) == 0 })
}

// TestListsLookInTurn: not even what a list shows is looked for before it is its turn.
func TestListsLookInTurn(t *testing.T) {
	t.Parallel()
	looked := make(chan struct{}, 1)
	c, router := overRouter(t, &stub{listed: func() { looked <- struct{}{} }}, asIs)
	done := router.TakeTurn(c.claims.Tenant)
	p := c.start("GET", "/locks")
	eventually(t, "it waits for its turn", func() bool { return router.Turns(c.claims.Tenant) == 2 })
	if len(looked) > 0 {
		t.Error("the locks are looked at before it is its turn")
	}
	done()
	p.wait().wantStatus(http.StatusOK)
	if len(looked) != 1 {
		t.Error("they are not looked at")
	}
	eventually(t, "its turn is over", func() bool { return router.Turns(c.claims.Tenant) == 0 })
}

// TestListsInParts: what is looked at for a list takes its turn in parts, and other tenants come between.
func TestListsInParts(t *testing.T) {
	t.Parallel()
	var others sync.WaitGroup
	var had atomic.Int64
	atOnce := max(1, runtime.GOMAXPROCS(0)/2)
	together := make(chan struct{}) // all have their turns, so that of the list is none of them
	late, deadline := false, time.Now().Add(20*time.Second)
	s := &stub{more: func() bool {
		late = time.Now().After(deadline)
		return had.Load() < int64(atOnce) && !late
	}}
	c, router := overRouter(t, s, asIs)
	s.listed = func() {
		for i := range atOnce {
			others.Go(func() {
				done := router.TakeTurn(fmt.Sprint("other", i))
				defer done()
				if had.Add(1) == int64(atOnce) {
					close(together)
				}
				<-together
			})
		}
	}
	c.get("/locks").wantStatus(http.StatusOK)
	if late {
		t.Error("others wait until it is over")
	}
	others.Wait()
	eventually(t, "its turn is over", func() bool { return router.Turns(c.claims.Tenant) == 0 })
}

// TestTurnOfWhoOwes: nothing large is looked for or made for who owes, and its turn goes to the next
// while its refusal is held back. Nor is there room kept for what is not made.
func TestTurnOfWhoOwes(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/locks", "/locks/orders"} {
		q := &indebted{Quotas: shared.quotas}
		m := &roomWhenRefused{RequestMetrics: shared.handlers(nil).Metrics}
		c, router := overRouter(t, &stub{page: largePage(), view: largeView()}, func(h *handlers.Config) { h.Quotas, h.Metrics = q, m })
		m.inFlight.Store(router)
		q.atOnce(t, c, path)
		if m.room.Load() > 0 {
			t.Errorf("%s: while it is refused, %d bytes are kept for the answer", path, m.room.Load())
		}
	}
}

// atOnce has two requests refused, until the second has its turn before the first has its refusal.
func (i *indebted) atOnce(t *testing.T, c *client, path string) {
	for range 20 { // on a busy machine the second may come when the first has been refused
		one, two := c.start("GET", path), c.start("GET", path)
		one.wait().wantStatus(http.StatusTooManyRequests)
		two.wait().wantStatus(http.StatusTooManyRequests)
		if i.between() < handlers.RefusalPause/3 {
			return
		}
	}
	t.Errorf("%s: the turn is kept while the refusal waits", path)
}

// roomWhenRefused is how much room for answers was taken when somebody was refused last.
type roomWhenRefused struct {
	handlers.RequestMetrics
	inFlight atomic.Pointer[handlers.Router]
	room     atomic.Int64
}

func (m *roomWhenRefused) QuotaRefused(context.Context, string, string) {
	m.room.Store(int64(m.inFlight.Load().InFlight()))
}

// indebted is a tenant that owes when a large answer is to be made.
type indebted struct {
	handlers.Quotas
	mu    sync.Mutex
	asked []time.Time
}

func (i *indebted) Charge(string, quota.Limit, int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, time.Now())
	return &quotas.Refusal{Why: quota.Standard().TooFast(quota.Requests, 2, time.Second), Quiet: true, Hundreds: 1}
}

// between is the time from the last but one request's turn to the last one's.
func (i *indebted) between() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := len(i.asked)
	return i.asked[n-1].Sub(i.asked[n-2])
}

// TestShorterIsNoRefusal: who owes is told less of who is in the way. That does not count as a refusal: nobody
// is told to wait, and whoever is refused more than a hundred times in a second counts as not waiting.
func TestShorterIsNoRefusal(t *testing.T) {
	t.Parallel()
	q := &owing{Quotas: shared.quotas}
	h := shared.handlers(shared.main.service)
	h.Quotas = q
	router := handlers.New(h)
	r := serve(nil, router)
	t.Cleanup(r.close)
	c := newTenant(t)
	for range 20 {
		c.post("/locks/full", body(muchNoted("shared"))).wantStatus(http.StatusCreated)
	}
	refused := func() int {
		a := c.at(r).post("/locks/full", body(`{}`), loose)
		a.wantStatus(http.StatusLocked)
		return len(a.body)
	}
	if n := refused(); n < 40_000 {
		t.Errorf("who owes nothing is told %d bytes", n)
	}
	q.owes.Store(true)
	if n := refused(); n > 1000 || q.charged.Load() {
		t.Errorf("who owes is told %d bytes; that is charged for: %v", n, q.charged.Load())
	}
	eventually(t, "the turns are over, and nothing is kept", func() bool { return router.Turns(c.claims.Tenant) == 0 && router.InFlight() == 0 })
}

// owing is what a tenant owes, or not.
type owing struct {
	handlers.Quotas
	owes, charged atomic.Bool
}

func (o *owing) Owes(string, quota.Limit) bool { return o.owes.Load() }

func (o *owing) Charge(tenant string, l quota.Limit, more int) error {
	o.charged.Store(true)
	return o.Quotas.Charge(tenant, l, more)
}

// TestDebtOfManyWhoWait: what many who are refused at one moment owe together is bounded: refusals
// that name many holders are made one after the other, and name nobody while the tenant owes.
func TestDebtOfManyWhoWait(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for range 100 {
		c.post("/locks/full", body(muchNoted("shared"))).wantStatus(http.StatusCreated)
	}
	c.limits(`{"requests_per_second":100}`)
	eventually(t, "there is room for all", func() bool {
		var now api.Quota
		c.admin().get(c.quotaPath()).want(http.StatusOK, &now)
		return now.Used.Requests == 0
	})
	var all sync.WaitGroup
	var named, refused atomic.Int64
	began := time.Now()
	for range 60 {
		all.Go(func() {
			a := c.post("/locks/full", body(`{"wait_seconds":3}`), loose)
			if a.status == http.StatusLocked {
				refused.Add(1)
			}
			if len(a.body) > 100_000 {
				named.Add(1)
			}
		})
	}
	all.Wait()
	most := 5 + int64(2*time.Since(began).Seconds()) // one is paid for within 0.6 s
	if refused.Load() < 30 || named.Load() == 0 || named.Load() > most {
		t.Errorf("%d are refused as the lock is held, %d with all that is known of the holders, want %d at most", refused.Load(), named.Load(), most)
	}
	a := c.get("/locks/x", loose)
	if used, _ := strconv.Atoi(fmt.Sprint(a.fields()["used"])); used > 100+3*65 {
		t.Errorf("%d of 100 are used: the debt of many requests", used)
	}
}

func muchNoted(mode string) string {
	return fmt.Sprintf(`{"ttl_seconds":600,"mode":%q,"metadata":{"k":%q}}`, mode, strings.Repeat("v", 2000))
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("n%02d", i))
	}
	return all
}
