package handlers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
)

// TestRequestRelease: a holder learns with a renewal, by a look and by an event that somebody
// asks it to finish, and that nobody does any more.
func TestRequestRelease(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events?types=lock.release_requested")
	held := c.acquire("orders:42", body(`{"ttl_seconds":600}`))
	first := c.named("b").at(shared.brief).post("/locks/orders:42", body(`{"ttl_seconds":600,"wait_seconds":600}`)).waiting(http.StatusAccepted)
	path := entryPath(first) + "/request-release"
	for _, r := range []*replica{shared.brief, shared.main, shared.other} { // to repeat it changes nothing
		c.at(r).post(path, lockToken(first.Token), body(`{"within_seconds":30}`)).wantNoContent()
	}
	second := c.named("d").join("orders:42", body(`{"wait_seconds":600,"request_release":{"within_seconds":0.5}}`))
	told := s.wants("lock.release_requested orders:42", "lock.release_requested orders:42")
	if a := told[0].Data.Data.Asked; a == nil || a.WithinSeconds != 30 || !a.WishedAt.Equal(a.Since.Add(30*time.Second)) || told[0].Data.Data.Entry.ID != first.ID {
		t.Errorf("the event is %+v", told[0])
	}
	if d := told[1].Data.Data; d.Asked == nil || d.Asked.WithinSeconds != 0.5 || !d.Asked.Since.Equal(d.Entry.EnqueuedAt.Time) || d.Held != nil {
		t.Errorf("the event of who asks when joining is %+v", d)
	}
	since := told[0].Data.Data.Asked.Since
	for _, a := range []*answer{
		c.at(shared.other).put("/locks/orders:42/renew", lockToken(held.Token)), c.get(entryPath(held), lockToken(held.Token)),
	} {
		got := a.held(http.StatusOK).Asked
		if got == nil || got.By != "b" || got.Waiting != 2 || !got.Since.Equal(since.Time) || !got.WishedAt.Equal(told[1].Data.Data.Asked.WishedAt.Time) {
			t.Errorf("the holder is told %+v", got)
		}
	}
	if got := c.get(entryPath(first), lockToken(first.Token)).waiting(http.StatusOK).Asked; got != nil {
		t.Errorf("a waiter is told %+v", got)
	}
	c.release(first)
	second.cancel()
	eventually(t, "nobody asks any more", func() bool {
		return c.put("/locks/orders:42/renew", lockToken(held.Token)).held(http.StatusOK).Asked == nil
	})
	c.post(path, lockToken(first.Token)).wantProblem(lost("released"))
	c.post(entryPath(held)+"/request-release", lockToken(held.Token)).wantProblem(problem{code: "already_held", detail: "the entry holds: nobody is in its way"})
	c.post(entryPath(held)+"/request-release", lockToken(first.Token)).wantProblem(tokenMismatch())
}

func TestRequestReleaseForASet(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events?types=lock.release_requested")
	limited := c.as(func(cl *auth.Claims) { cl.Locks = []string{"b"} }).follow("/events?types=lock.release_requested")
	held := c.acquire("a", body(`{"ttl_seconds":600}`))
	waits := c.named("b").at(shared.brief).post("/locksets", body(`{"ttl_seconds":600,"wait_seconds":600,"locks":[{"name":"b"},{"name":"a"}]}`)).set(http.StatusAccepted, "waiting")
	c.post("/locksets/"+waits.ID+"/request-release", lockToken(waits.Token)).wantNoContent()
	e := s.wants("lock.release_requested a")[0].Data.Data.Entry
	if len(e.Locks) != 1 || e.ID != waits.ID {
		t.Errorf("the event is about %+v, want the lock for which it waits", e)
	}
	limited.wants()
	if got := c.put("/locks/a/renew", lockToken(held.Token)).held(http.StatusOK).Asked; got == nil || got.Waiting != 1 {
		t.Errorf("the holder is told %+v", got)
	}
	asks := "/locksets/" + waits.ID + "/request-release"
	c.post(asks).wantProblem(invalid("Lock-Token", "must be sent, once, as a header"))
	c.post(asks, lockToken(held.Token)).wantProblem(tokenMismatch())
	c.delete("/locksets/"+waits.ID, lockToken(waits.Token)).wantNoContent()
	c.post(asks, lockToken(waits.Token)).wantProblem(lost("released"))
	set := c.acquireSet(`{"ttl_seconds":600,"locks":[{"name":"x"},{"name":"y"}]}`)
	c.post("/locksets/"+set.ID+"/request-release", lockToken(set.Token)).wantProblem(problem{code: "already_held", detail: "the entry holds: nobody is in its way"})
	p := c.join("y", body(`{"wait_seconds":600,"request_release":{}}`))
	eventually(t, "who holds a set is told", func() bool {
		a := c.put("/locksets/"+set.ID+"/renew", lockToken(set.Token)).set(http.StatusOK, "held").Asked
		return a != nil && a.Waiting == 1
	})
	p.cancel()
}

func TestBadReleaseRequests(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	within := invalid("request_release.within_seconds", "must be between 0 and 86400")
	for text, want := range map[string]problem{
		`{"request_release":{}}`: invalid("request_release", "needs wait_seconds: who does not wait asks nobody"),

		`{"wait_seconds":1,"request_release":{"within_seconds":-1}}`:    within,
		`{"wait_seconds":1,"request_release":{"within_seconds":1e9}}`:   within,
		`{"wait_seconds":1,"request_release":{"within_seconds":"1"}}`:   invalid("request_release.within_seconds", "must be a number"),
		`{"wait_seconds":1,"request_release":{"within":1}}`:             meant(unknown("request_release.within"), "within_seconds"),
		`{"wait_seconds":1,"request_release":{"Within_Seconds":1}}`:     meant(unknown("request_release.Within_Seconds"), "within_seconds"),
		`{"wait_seconds":1,"request_release":true}`:                     invalid("request_release", "must be an object"),
		`{"wait_seconds":1,"async":true,"request_release":[{"a":"b"}]}`: invalid("request_release", "must be an object"),
	} {
		c.post("/locks/a", body(text), loose).wantProblem(want)
	}
	held := c.acquire("a")
	path := entryPath(held) + "/request-release"
	c.post(path, lockToken(held.Token), body(`{"within_seconds":86401}`), loose).wantProblem(invalid("within_seconds", "must be between 0 and 86400"))
	c.post(path, lockToken(held.Token), body(`{"wait_seconds":1}`), loose).wantProblem(unknown("wait_seconds"))
	c.post(path).wantProblem(invalid("Lock-Token", "must be sent, once, as a header"))
	c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksRead} }).post(path, lockToken(held.Token)).wantProblem(problem{code: "forbidden", detail: "the caller lacks the scope locks:write"})
}
