package handlers_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// TestStaleWriteIsShownToOperators: the lock's page has what resources reported to any replica. A
// token of other locks cannot replace it.
func TestStaleWriteIsShownToOperators(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:42")
	c.release(first)
	second := c.acquire("orders:42")
	report := fmt.Sprintf(
		`{"fence_presented":%d,"fence_known":%d,"resource":"db-7/<orders>"}`, *first.Fence, *second.Fence,
	)
	c.at(shared.main).post("/locks/orders:42/stale-writes", body(report)).wantNoContent()
	c.at(shared.other).named("resource-2").
		post("/locks/orders:42/stale-writes", body(report)).wantNoContent()
	scratch := c.within("scratch:*")
	for i := range service.MaxStaleWrites + 10 {
		scratch.post(fmt.Sprintf("/locks/scratch:%d/stale-writes", i), body(report)).wantNoContent()
	}
	page := func(name string) (v api.AdminLockView) {
		c.operator().get("/admin/locks/"+c.claims.Tenant+"/"+name).want(http.StatusOK, &v)
		return v
	}
	poll.Until(t, "both are kept", func() bool { return len(page("orders:42").StaleWrites) == 2 })
	for _, w := range page("orders:42").StaleWrites {
		if w.FencePresented != *first.Fence || w.FenceKnown != *second.Fence ||
			w.Resource != "db-7/<orders>" || w.Holder != "worker-1" || w.Ended != "released" ||
			w.LateSeconds == nil || w.EnoughTTLSeconds != nil {
			t.Errorf("shown is %+v", w)
		}
	}
	if got := page("orders:43").StaleWrites; len(got) != 0 {
		t.Errorf("of another lock %+v are shown", got)
	}
}

// TestStaleWriteAfterExpiry: the report says how late the holder was, and which TTL is enough.
func TestStaleWriteAfterExpiry(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	ttl := minTTL.Seconds()
	first := c.acquire("a", body(fmt.Sprintf(`{"ttl_seconds":%g}`, ttl)))
	second := c.named("next").join("a").wait().held(http.StatusCreated)
	c.post("/locks/a/stale-writes", body(fmt.Sprintf(
		`{"fence_presented":%d,"fence_known":%d,"resource":"db"}`, *first.Fence, *second.Fence,
	))).wantNoContent()
	var v api.AdminLockView
	poll.Until(t, "it is kept", func() bool {
		c.operator().get("/admin/locks/"+c.claims.Tenant+"/a").want(http.StatusOK, &v)
		return len(v.StaleWrites) == 1
	})
	w := v.StaleWrites[0]
	if w.Holder != "worker-1" || w.Ended != "expired" || w.LateSeconds == nil ||
		w.EnoughTTLSeconds == nil || float64(*w.EnoughTTLSeconds) < ttl+float64(*w.LateSeconds) {
		t.Errorf("shown is %+v", w)
	}
}

func TestBadStaleWriteReports(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	fence := *c.acquire("a").Fence
	path := "/locks/a/stale-writes"
	for text, want := range map[string]problem{
		``: invalid("fence_presented", "must be between 1 and 9007199254740991"),
		`{"fence_presented":1,"fence_known":1,"resource":"db"}`: invalid(
			"fence_presented", "must be less than fence_known: otherwise the write was not stale",
		),
		`{"fence_presented":-1,"fence_known":1,"resource":"db"}`: invalid(
			"fence_presented", "must be between 1 and 9007199254740991",
		),
		`{"fence_presented":1,"fence_known":9007199254740992,"resource":"db"}`: invalid(
			"fence_known", "must be between 1 and 9007199254740991",
		),
		`{"fence_presented":1,"fence_known":9007199254740991,"resource":"db"}`: invalid(
			"fence_known", "is greater than every fence that was handed out; send the fence of a grant",
		),
		`{"fence_presented":1.5,"fence_known":3,"resource":"db"}`: invalid(
			"fence_presented", "must be a whole number",
		),
		`{"fence_presented":"1","fence_known":3,"resource":"db"}`: invalid(
			"fence_presented", "must be a whole number",
		),
		fmt.Sprintf(`{"fence_presented":1,"fence_known":%d}`, fence): invalid(
			"resource", "must not be empty",
		),
		fmt.Sprintf(`{"fence_presented":1,"fence_known":%d,"lock":"a"}`, fence): unknown("lock"),
	} {
		c.post(path, body(text), loose).wantProblem(want)
	}
	whole := body(fmt.Sprintf(`{"fence_presented":1,"fence_known":%d,"resource":"db"}`, fence))
	c.within("b").post(path, whole).wantProblem(otherNames("a"))
	c.post("/locks/-/stale-writes", whole).wantProblem(invalidName())
}
