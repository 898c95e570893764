package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/blocking"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// blocked polls the trees until so many entries wait.
func (c *client) blocked(query string, waiting int) *api.AdminBlocking {
	c.t.Helper()
	b := &api.AdminBlocking{}
	poll.Until(c.t, fmt.Sprintf("%d are blocked", waiting), func() bool {
		*b = api.AdminBlocking{}
		c.get("/admin/blocking"+query).want(http.StatusOK, b)
		return b.Waiting == waiting
	})
	return b
}

// treeLines writes a tree as lines: its head, and each wait with its lock.
func treeLines(b *api.AdminBlocking) string {
	var out []string
	holders := map[string]string{}
	for _, t := range b.Trees {
		for _, h := range t.Heads {
			holders[h.ID] = t.Holder
		}
		out = append(out, t.Holder)
		for _, w := range t.Waits {
			holders[w.ID] = w.Holder
			out = append(out, fmt.Sprintf("%d:%s@%s", w.Depth, w.Holder, w.Name))
		}
	}
	return strings.Join(out, " ")
}

// TestWaitsAreBlamedOnTheHead: w3 waits for w2, and w2 waits for w1; both replicas blame w1 for all
// of it.
func TestWaitsAreBlamedOnTheHead(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("a", worker("w1"))
	second := c.acquire("b", worker("w2"))
	middle := c.join("a", waitsAs("w2"))
	c.join("b", waitsAs("w3"))
	newTenant(t).acquire("a", worker("w9"))
	for _, r := range []*replica{shared.main, shared.other} {
		b := c.operator().at(r).blocked("", 2)
		if got := treeLines(b); got != "w1 1:w2@a 2:w3@b" || b.Heads != 1 || b.Truncated {
			t.Fatalf("%s: %+v", got, b)
		}
		tree := b.Trees[0]
		if h := tree.Heads[0]; h.ID != first.ID || h.Name != "a" || h.Fence != *first.Fence ||
			h.State != "held" || h.Waiting != 1 || h.Sharing != 1 {
			t.Errorf("head %+v", h)
		}
		if w := tree.Waits[1]; w.Behind != second.ID || w.Under != tree.Waits[0].ID || w.Position != 1 ||
			tree.Waits[0].Behind != first.ID || tree.Waits[0].Under != "" {
			t.Errorf("waits %+v", tree.Waits)
		}
		if tree.Tenant != c.claims.Tenant || !tree.Named || tree.Depth != 2 || tree.Waiting != 2 ||
			tree.BlamedSeconds < 0 {
			t.Errorf("tree %+v", tree)
		}
	}
	onlyB := c.operator().within("b")
	if got := treeLines(onlyB.blocked("", 1)); got != "w2 1:w3@b" {
		t.Errorf("who may see b is shown %s", got)
	}
	c.admin().blocked("?limit=1&tenant="+c.claims.Tenant, 2)
	c.release(first)
	poll.Until(t, "w2 has both", func() bool { return middle.answered() })
	if got := treeLines(c.operator().blocked("", 1)); got != "w2 1:w3@b" {
		t.Errorf("after the release: %s", got)
	}
}

// TestHoldings: everything of one holder, as it has to be named to revoke it.
func TestHoldings(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	a := c.acquire("a", worker("w1"))
	c.acquire("b", worker("w2"))
	c.acquire("free", worker("w2"))
	c.start(
		"POST", "/locksets",
		body(`{"locks":[{"name":"b"},{"name":"c","mode":"shared"}],"holder":"w1","wait_seconds":60}`),
	)
	unnamed := c.named("w1").acquire("z")
	newTenant(t).acquire("a", worker("w1"))
	var h api.AdminHoldings
	read := func(who *client, query string, total int) {
		t.Helper()
		poll.Until(t, fmt.Sprintf("w1 has %d entries", total), func() bool {
			h = api.AdminHoldings{}
			who.get("/admin/holders?holder=w1"+query).want(http.StatusOK, &h)
			return len(h.Entries) == total
		})
	}
	for _, r := range []*replica{shared.main, shared.other} {
		read(c.operator().at(r), "", 3)
		if h.Holding != 2 || h.Waiting != 1 || h.Truncated || h.Tenant != c.claims.Tenant {
			t.Fatalf("holdings %+v", h)
		}
		one, two, three := h.Entries[0], h.Entries[1], h.Entries[2]
		if one.ID != a.ID || one.Fence != *a.Fence || one.State != "held" || one.Since == nil ||
			!one.Named || one.Locks[0].State != "held" {
			t.Errorf("the first is %+v", one)
		}
		if l := two.Locks; two.State != "waiting" || two.Set != 2 || l[0].Name != "b" ||
			l[0].Position != 1 || l[0].State != "waiting" || l[1].State != "reserved" ||
			l[1].Position != 0 || l[1].Mode != "shared" {
			t.Errorf("the second is %+v", two)
		}
		if three.ID != unnamed.ID || three.Named || three.State != "held" {
			t.Errorf("the third is %+v", three)
		}
	}
	read(c.operator(), "&limit=2", 2)
	if !h.Truncated || h.Holding != 2 || h.Waiting != 1 {
		t.Errorf("two of three are told as %+v", h)
	}
	onlyC := c.operator().within("c")
	read(onlyC, "", 1)
	if l := h.Entries[0].Locks; len(l) != 1 || l[0].Name != "c" {
		t.Errorf("who may see c is shown %+v", h.Entries)
	}
	read(c.admin(), "&tenant="+c.claims.Tenant, 3)
	var all []string
	for _, e := range h.Entries {
		all = append(all, fmt.Sprintf(`{"id":%q,"fence":%d}`, e.ID, e.Fence))
	}
	c.operator().post("/admin/holders/revoke", body(
		`{"tenant":"`+c.claims.Tenant+`","holder":"w1","reason":"its node was lost",`+
			`"entries":[`+strings.Join(all, ",")+`]}`,
	)).wantStatus(http.StatusOK)
	read(c.operator(), "", 0)
}

func TestBlockingRefusals(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.admin().get("/admin/holders?holder=w1").
		wantProblem(invalid("tenant", "must be sent: holders are of a tenant"))
	c.operator().get("/admin/holders?holder=%0a").wantStatus(http.StatusBadRequest)
	c.operator().get("/admin/holders").wantStatus(http.StatusBadRequest)
	c.operator().get("/admin/holders?holder=w1&limit=201").
		wantProblem(invalid("limit", "must be a whole number from 1 to 200"))
	c.operator().get("/admin/blocking?limit=0").
		wantProblem(invalid("limit", "must be a whole number from 1 to 1000"))
	for _, path := range []string{
		"/admin/blocking?tenant=acme", "/admin/holders?holder=w1&tenant=acme",
	} {
		c.operator().get(path).wantProblem(ownTenantOnly())
	}
}

// manyTrees are more than fit into 1 MiB.
func manyTrees() *service.Blocking {
	f := &blocking.Forest{Heads: 100}
	long := strings.Repeat("h", 200)
	e := &lock.Entry{ID: someID, Tenant: "acme", Holder: long, Number: 7}
	for range 100 {
		t := &blocking.Tree{
			Tenant: "acme", Holder: long, Waiting: 200,
			Heads: []blocking.Head{{Lock: "a", Entry: e, Holds: true, Front: 1, Waiting: 200}},
		}
		for range 200 {
			t.Waits = append(
				t.Waits,
				blocking.Wait{Lock: "a", Entry: e, Position: 1, Depth: 1, Behind: e, Since: time.Now()},
			)
		}
		f.Trees = append(f.Trees, t)
	}
	return &service.Blocking{Forest: f}
}

func TestLargeForestIsCut(t *testing.T) {
	t.Parallel()
	a := overConsole(t, &consoleStub{blocking: manyTrees()}).get("/admin/blocking")
	var b api.AdminBlocking
	a.want(http.StatusOK, &b)
	if n := len(b.Trees); len(a.body) > 1<<20 || n == 0 || n == 100 || !b.Truncated {
		t.Errorf("%d trees in %d bytes, truncated %t", n, len(a.body), b.Truncated)
	}
}
