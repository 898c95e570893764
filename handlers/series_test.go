package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/test/poll"
)

func (c *client) history(name string, right func(*api.AdminHistory) bool) *api.AdminHistory {
	c.t.Helper()
	h := &api.AdminHistory{}
	poll.Until(c.t, "the history of "+name+" is right", func() bool {
		*h = api.AdminHistory{}
		c.get("/admin/locks/"+c.claims.Tenant+"/"+name+"/history").want(http.StatusOK, h)
		return right(h)
	})
	return h
}

// TestSeries: what happened in a tenant is counted, at both replicas alike.
func TestSeries(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for i := range 5 {
		c.release(c.acquire(fmt.Sprintf("a:%d", i)))
	}
	c.acquire("b")
	c.join("b", waitsAs("w2"))
	newTenant(t).acquire("b")
	for _, r := range []*replica{shared.main, shared.other} {
		var s api.AdminSeries
		poll.Until(t, "everything is counted", func() bool {
			s = api.AdminSeries{}
			c.operator().at(r).get("/admin/series").want(http.StatusOK, &s)
			return s.Whole != nil && s.Whole.Releases == 5 && s.Whole.Waiting > 0 && s.Whole.Holding > 0
		})
		grants := 0
		for _, p := range s.Points {
			grants += p.Grants
		}
		if w := s.Whole; w.Grants != 6 || grants != 6 || w.Expiries != 0 || w.WaitSeconds == nil ||
			w.HoldSeconds == nil || w.GrantsPerSecond <= 0 || w.Waiting > 1 || w.Holding > 2 ||
			s.Since == nil || s.StepSeconds != 10 {
			t.Errorf("%+v\n%+v", s, s.Whole)
		}
		var hours api.AdminSeries
		c.operator().at(r).get("/admin/series?step_seconds=300").want(http.StatusOK, &hours)
		if hours.StepSeconds != 300 || len(hours.Points) > 2 || hours.Whole.Grants != 6 {
			t.Errorf("the hours are %+v", hours)
		}
		if s.Tenant != c.claims.Tenant || s.Replica != replicaID {
			t.Errorf("it is of %q at %q", s.Tenant, s.Replica)
		}
	}
	var o api.AdminOverview
	c.operator().get("/admin/overview").want(http.StatusOK, &o)
	if o.Recent == nil || o.Recent.Grants != 6 {
		t.Errorf("the overview tells of %+v", o.Recent)
	}
	c.operator().get("/admin/series?step_seconds=60").wantProblem(problem{
		code: "invalid_request", field: "step_seconds", detail: "step_seconds must be 10 or 300",
	})
	c.admin().get("/admin/series").want(http.StatusOK, &api.AdminSeries{})
	limited := c.operator().within("b")
	limited.get("/admin/series").wantProblem(problem{
		code: "forbidden", detail: "this is about all locks, and the caller is limited to some; " +
			"use a credential without that limit",
	})
	o = api.AdminOverview{}
	limited.get("/admin/overview").want(http.StatusOK, &o)
	if o.Recent != nil {
		t.Errorf("who may see b is told of all: %+v", o.Recent)
	}
	c.operator().get("/admin/series?tenant=acme").wantProblem(ownTenantOnly())
}

// TestHistory: what happened to a lock, who held it, and why.
func TestHistory(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("a", worker("w1"))
	second := c.join("a", waitsAs("w2"))
	c.operator().post(
		fmt.Sprintf("/admin/locks/%s/a/entries/%s/revoke", c.claims.Tenant, first.ID),
		body(fmt.Sprintf(`{"fence":%d,"reason":"its node was lost"}`, *first.Fence)),
	).wantStatus(http.StatusOK)
	held := second.wait().held(http.StatusCreated)
	c.post("/locks/a/stale-writes", body(fmt.Sprintf(
		`{"fence_presented":%d,"fence_known":%d,"resource":"db"}`, *first.Fence, *held.Fence,
	))).wantNoContent()
	c.release(held)
	for _, r := range []*replica{shared.main, shared.other} {
		h := c.operator().at(r).history(
			"a", func(h *api.AdminHistory) bool { return len(h.Events) == 5 && h.Evidence.StaleWrites > 0 },
		)
		var types []string
		for _, e := range h.Events {
			types = append(types, strings.TrimPrefix(e.Type, "lock."))
		}
		if got := strings.Join(types, " "); got != "released acquired revoked enqueued acquired" {
			t.Fatalf("events: %s", got)
		}
		if e := h.Events[2]; e.RevokedBy != c.claims.Subject || e.Reason != "its node was lost" ||
			!e.Held || e.LastedSeconds == nil || e.Number != *first.Fence || e.Holder != "w1" {
			t.Errorf("revoked: %+v", e)
		}
		if p := h.Holders; len(p) != 2 || p[0].Holder != "w2" || p[0].Fence != *held.Fence ||
			p[0].Ended != "released" || p[1].Ended != "revoked" {
			t.Errorf("holders: %+v", p)
		}
		if e := h.Evidence; e.StaleWrites != 1 || e.WorkedAfterExpiry != 0 || len(e.Words) != 1 ||
			!strings.Contains(e.Words[0], "1 writes") {
			t.Errorf("evidence: %+v", e)
		}
	}
	free := c.operator().history("free", func(*api.AdminHistory) bool { return true })
	if len(free.Events) != 0 ||
		free.Evidence.Words[0] != "nothing that this replica has seen shows that a lease was too short" ||
		free.RecommendedTTLSeconds != nil {
		t.Errorf("of a lock that nobody used: %+v", free)
	}
}

// TestEvidence: a holder that works on after its lease expired shows, once.
func TestEvidence(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("a", body(fmt.Sprintf(`{"holder":"w1","ttl_seconds":%v}`, minTTL.Seconds())))
	c.operator().history("a", func(h *api.AdminHistory) bool {
		return len(h.Events) == 2 && h.Events[0].Type == "lock.expired"
	})
	for range 3 {
		c.put("/locks/a/renew", lockToken(e.Token)).wantStatus(http.StatusGone)
	}
	c.delete("/locks/a", lockToken(e.Token)).wantStatus(http.StatusGone)
	h := c.operator().
		history("a", func(h *api.AdminHistory) bool { return h.Evidence.WorkedAfterExpiry > 0 })
	if ev := h.Evidence; ev.WorkedAfterExpiry != 1 || len(ev.Signs) != 1 ||
		!strings.Contains(ev.Words[0], "after their lease expired") {
		t.Fatalf("evidence: %+v", ev)
	}
	if s := h.Evidence.Signs[0]; s.Kind != "renewed_after_expiry" || s.Entry != e.ID ||
		s.Fence != *e.Fence || s.Holder != "w1" || s.AfterSeconds == nil {
		t.Errorf("sign: %+v", s)
	}
	released := c.acquire("b")
	c.release(released)
	c.put("/locks/b/renew", lockToken(released.Token)).wantStatus(http.StatusGone)
	if b := c.operator().history(
		"b", func(h *api.AdminHistory) bool { return len(h.Events) == 2 },
	); b.Evidence.WorkedAfterExpiry != 0 {
		t.Errorf("a late renewal of what was released is taken for %+v", b.Evidence)
	}
}

// TestEvidenceOfSets: of a set whose lease was too short each of its locks has the evidence.
func TestEvidenceOfSets(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	set := c.post(
		"/locksets",
		body(fmt.Sprintf(`{"locks":[{"name":"a"},{"name":"b"}],"ttl_seconds":%v}`, minTTL.Seconds())),
	).known(http.StatusCreated)
	c.operator().history("b", func(h *api.AdminHistory) bool {
		return len(h.Events) == 2 && h.Events[0].Type == "lock.expired"
	})
	for _, name := range []string{"a", "b"} {
		h := c.operator().history(name, func(h *api.AdminHistory) bool {
			c.put("/locksets/"+set.ID+"/renew", lockToken(set.Token)).wantStatus(http.StatusGone)
			return h.Evidence.WorkedAfterExpiry > 0
		})
		if ev := h.Evidence; ev.WorkedAfterExpiry != 1 || len(ev.Signs) != 1 ||
			ev.Signs[0].Kind != "renewed_after_expiry" || ev.Signs[0].Entry != set.ID {
			t.Errorf("evidence of %s: %+v", name, ev)
		}
	}
}

// TestHeatMap: locks that are waited for, and no others.
func TestHeatMap(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.acquire("quiet")
	c.acquire("a")
	c.acquire("b")
	c.join("b", waitsAs("w2"))
	c.join("b", waitsAs("w3"))
	c.join("a", waitsAs("w4"))
	var m api.AdminHeatMap
	names := func(who *client) string {
		m = api.AdminHeatMap{}
		who.get("/admin/heatmap").want(http.StatusOK, &m)
		var out []string
		for _, r := range m.Rows {
			out = append(out, r.Tenant+"/"+r.Name)
		}
		return strings.Join(out, " ")
	}
	own := c.claims.Tenant + "/"
	poll.Until(
		t, "both locks are shown", func() bool { return names(c.operator()) == own+"b "+own+"a" },
	)
	if cells := m.Rows[0].Waiting; len(cells) != 30 || m.StepSeconds != 30 || m.Truncated ||
		cells[29] > 3 {
		t.Errorf("%+v", m)
	}
	limited := c.operator().within("a")
	if got := names(limited); got != own+"a" {
		t.Errorf("who may see a is shown %s", got)
	}
	c.operator().get("/admin/heatmap?limit=1").want(http.StatusOK, &m)
	if !m.Truncated {
		t.Error("one lock of two is all")
	}
	for name, waited := range map[string]bool{"b": true, "quiet": false} {
		var h api.AdminHistory
		poll.Until(t, "the history of "+name+" says how many waited", func() bool {
			h = api.AdminHistory{}
			c.operator().get("/admin/locks/"+own+name+"/history").want(http.StatusOK, &h)
			return (h.Waiting != nil) == waited
		})
		if w := h.Waiting; waited &&
			(len(w.Average) != 30 || w.StepSeconds != 30 || w.From != m.From && w.Average[28] == 0) {
			t.Errorf("%+v of %s, the map begins at %s", w, name, m.From)
		}
	}
	c.operator().get("/admin/heatmap?limit=x").
		wantProblem(invalid("limit", "must be a whole number from 1 to 1000"))
}
