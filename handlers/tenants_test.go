package handlers_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
)

// TestOtherTenantCannotTellThatALockExists: in every route, another tenant gets the answer that it
// would get for a lock that does not exist, and changes nothing.
func TestOtherTenantCannotTellThatALockExists(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:42", body(`{"holder":"secretive","metadata":{"job":"7"}}`), key("k"))
	second := c.at(shared.brief).named("b").
		post("/locks/orders:42", body(`{"wait_seconds":60}`), key("w")).waiting(http.StatusAccepted)
	waits := c.named("b").start("POST", "/locks/orders:42", body(`{"wait_seconds":60}`), key("w"))
	c.list("consistent=true")

	other := newTenant(t)
	forged := "fp1_" + strings.Repeat("A", 64)
	for _, e := range []entry{first, second} {
		for name, r := range tokenRoutes(e) {
			got := other.do(r[0], r[1], lockToken(e.Token))
			unknown := tokenRoutes(entry{Name: "unknown", ID: e.ID})[name]
			sameAnswer(t, got, other.do(unknown[0], unknown[1], lockToken(forged)))
			sameAnswer(t, got, other.at(shared.brief).do(r[0], r[1], lockToken(e.Token)))
			if took := got.received.Sub(got.sent); took > 25*time.Second {
				t.Errorf("%v took %v: it waited behind another tenant", got, took)
			}
		}
	}
	for _, query := range []string{"", "?consistent=true"} {
		sameAnswer(t, other.get("/locks/orders:42"+query), other.get("/locks/unknown"+query))
	}
	for _, query := range []string{
		"consistent=true", "prefix=orders:", "state=held", "state=contended", "limit=1",
		"cursor=" + afterOf("orders:41"),
	} {
		sameAnswer(t, other.get("/locks?"+query), newTenant(t).get("/locks?"+query))
	}
	if waits.answered() {
		t.Fatalf("the waiter was answered: %v, %v", waits.answer, waits.err)
	}
	c.checkQueue("orders:42", first, []string{"b"})
}

func afterOf(name string) string { return segment("locks|" + name) }

// varying are the parts of an answer that differ from request to request, and
// the name that the request asked for.
var varying = regexp.MustCompile(`"(request_id|revision|name)":("[^"]*"|[0-9]+)`)

func sameAnswer(t *testing.T, got, want *answer) {
	t.Helper()
	strip := func(a *answer) string { return varying.ReplaceAllString(string(a.body), `"$1":0`) }
	if got.status != want.status || strip(got) != strip(want) {
		t.Errorf("%v and %v: they can be told apart", got, want)
	}
	g, w := got.header.Clone(), want.header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "Content-Length"} {
		g.Del(name)
		w.Del(name)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%v and %v: they can be told apart (-want +got)\n%s", got, want, diff)
	}
}

// TestTenantsShareNoNames: two tenants use one name, one key and one subject without ever
// meeting.
func TestTenantsShareNoNames(t *testing.T) {
	t.Parallel()
	a, b := newTenant(t), newTenant(t)
	ea := a.acquire("orders:42", key("k"), body(someBody))
	eb := b.acquire("orders:42", key("k"), body(`{}`)) // at once, and with other parameters
	if ea.ID == eb.ID || ea.Token == eb.Token {
		t.Fatal("two tenants have one entry")
	}
	pb := b.join("orders:42", key("w"))
	a.checkQueue("orders:42", ea, nil)
	b.checkQueue("orders:42", eb, []string{"worker-1"})
	b.release(eb)
	b.delete("/locks/orders:42", lockToken(pb.wait().held(http.StatusCreated).Token)).wantNoContent()
	a.checkQueue("orders:42", ea, nil)
	if f := a.look("orders:42").Figures; *f.Acquisitions != 1 {
		t.Errorf("a's lock was acquired %d times, want 1: b's are counted", *f.Acquisitions)
	}
	b.post("/locks/orders:42", key("k"), body(`{}`)).wantProblem(lost("released"))
	a.acquire("orders:42", key("k"), body(someBody)) // still a's own entry
}

// TestTenantsWithOnePrefix: names of tenants and locks never run into each other.
func TestTenantsWithOnePrefix(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	tenant := func(name string) *client {
		return c.as(func(cl *auth.Claims) { cl.Tenant = c.claims.Tenant + name })
	}
	owners := []*client{c, tenant("-2"), tenant("a"), tenant("0"), tenant("-")}
	for _, owner := range owners {
		for _, name := range []string{"a", "a:b", "a-2"} {
			owner.acquire(name, body(`{"holder":"`+owner.claims.Tenant+`"}`))
		}
	}
	for _, owner := range owners {
		p := owner.list("consistent=true")
		if got := p.names(); !slices.Equal(got, []string{"a", "a-2", "a:b"}) {
			t.Errorf("%s sees %q", owner.claims.Tenant, got)
		}
		for _, l := range p.Locks {
			if len(l.Holders) != 1 || l.Holders[0].Holder != owner.claims.Tenant {
				t.Errorf("%s sees the holders %+v", owner.claims.Tenant, l.Holders)
			}
		}
	}
}

// TestNoTokenInSight: no look shows a token, the id of an entry or a key.
func TestNoTokenInSight(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("orders:42", key("very-own-key"), body(`{"metadata":{"a":"b"}}`))
	c.join("orders:42", key("other-own-key"))
	held := c.post("/locks/orders:42")
	held.refused("lock_held")
	for _, a := range []*answer{c.get("/locks/orders:42?consistent=true"), c.get("/locks"), held} {
		for _, own := range []string{e.Token, e.ID, "own-key", c.bearer} {
			if strings.Contains(string(a.body), own) {
				t.Errorf("%v shows %q", a, own)
			}
		}
		if !json.Valid(a.body) || !strings.Contains(string(a.body), "worker-1") {
			t.Errorf("%v does not show the holder: what was checked?", a)
		}
	}
}
