package handlers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
)

// TestStaleWriteIsReported: those who may see the lock are told what the resource refused.
func TestStaleWriteIsReported(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events?types=lock.stale_write")
	limited := c.as(func(cl *auth.Claims) { cl.Locks = []string{"stock:*"} }).follow("/events?types=lock.stale_write")
	first := c.acquire("orders:42")
	c.release(first)
	second := c.acquire("orders:42")
	report := fmt.Sprintf(`{"fence_presented":%d,"fence_known":%d,"resource":"db-7/<orders>"}`, *first.Fence, *second.Fence)
	for _, r := range []*replica{shared.main, shared.main, shared.other} {
		c.at(r).post("/locks/orders:42/stale-writes", body(report)).wantNoContent()
	}
	told := s.wants("lock.stale_write orders:42")[0].Data.Data
	if diff := cmp.Diff(&staleWrite{*first.Fence, *second.Fence, "db-7/<orders>"}, told.Stale); diff != "" || told.Entry != nil {
		t.Errorf("the event is %+v (-want +got):\n%s", told, diff)
	}
	limited.wants()
}

func TestBadStaleWriteReports(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	fence := *c.acquire("a").Fence
	path := "/locks/a/stale-writes"
	for text, want := range map[string]problem{
		``: invalid("fence_presented", "must be between 1 and 9007199254740991"),
		`{"fence_presented":1,"fence_known":1,"resource":"db"}`:                 invalid("fence_presented", "must be less than fence_known: otherwise the write was not stale"),
		`{"fence_presented":-1,"fence_known":1,"resource":"db"}`:                invalid("fence_presented", "must be between 1 and 9007199254740991"),
		`{"fence_presented":1,"fence_known":9007199254740992,"resource":"db"}`:  invalid("fence_known", "must be between 1 and 9007199254740991"),
		`{"fence_presented":1,"fence_known":9007199254740991,"resource":"db"}`:  invalid("fence_known", "is greater than every fence that was handed out"),
		`{"fence_presented":1.5,"fence_known":3,"resource":"db"}`:               invalid("fence_presented", "must be a whole number"),
		`{"fence_presented":"1","fence_known":3,"resource":"db"}`:               invalid("fence_presented", "must be a whole number"),
		fmt.Sprintf(`{"fence_presented":1,"fence_known":%d}`, fence):            invalid("resource", "must not be empty"),
		fmt.Sprintf(`{"fence_presented":1,"fence_known":%d,"lock":"a"}`, fence): unknown("lock"),
	} {
		c.post(path, body(text), loose).wantProblem(want)
	}
	whole := body(fmt.Sprintf(`{"fence_presented":1,"fence_known":%d,"resource":"db"}`, fence))
	c.as(func(cl *auth.Claims) { cl.Locks = []string{"b"} }).post(path, whole).wantProblem(otherNames("a"))
	c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksRead} }).post(path, whole).wantProblem(problem{code: "forbidden", detail: "the caller lacks the scope locks:write"})
	c.post("/locks/-/stale-writes", whole).wantProblem(invalidName())
}

// TestContradictionIsTold: with both examples, without the names that the reader may not use.
func TestContradictionIsTold(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events?types=lock.order_contradiction")
	limited := c.as(func(cl *auth.Claims) { cl.Locks = []string{"stock:*"} }).follow("/events?types=lock.order_contradiction")
	for _, habit := range [][]string{{"w1", "orders:1", "stock:1"}, {"w2", "stock:2", "orders:2"}} {
		named := body(fmt.Sprintf(`{"holder":%q}`, habit[0]))
		first, second := c.acquire(habit[1], named), c.acquire(habit[2], named)
		c.release(second)
		c.release(first)
	}
	ring := s.wants("lock.order_contradiction orders:1,orders:2,stock:1,stock:2")[0].Data.Data.Ring
	if ring == nil || ring.Length != 2 || len(ring.Sides) != 2 {
		t.Fatalf("told is %+v", ring)
	}
	seen := map[string]bool{}
	for _, side := range ring.Sides {
		seen[fmt.Sprint(side.From, side.To, side.Example.Holder, side.Example.Held, side.Example.Taken)] = true
	}
	if !seen["orders:*stock:*w1orders:1stock:1"] || !seen["stock:*orders:*w2stock:2orders:2"] {
		t.Errorf("the sides are %v", seen)
	}
	part := limited.wants("lock.order_contradiction stock:1,stock:2")[0].Data.Data.Ring
	for _, side := range part.Sides {
		if strings.Contains(fmt.Sprint(side), "orders") {
			t.Errorf("a name that the reader may not use is told: %+v", side)
		}
	}
}
