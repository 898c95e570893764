package handlers_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// TestRequestRelease: the holder sees at its renewal that a waiter asks for release, and so does
// a look at the lock, until no waiter asks.
func TestRequestRelease(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events?types=lock.release_requested")
	held := c.acquire(
		"orders:42", body(`{"ttl_seconds":600,"request_release":{},"wait_seconds":1}`),
	) // it need not wait
	first := c.named("b").at(shared.brief).post(
		"/locks/orders:42",
		body(`{"ttl_seconds":600,"wait_seconds":600,"request_release":{"within_seconds":30}}`),
	).waiting(http.StatusAccepted)
	second := c.named("d").
		join("orders:42", body(`{"wait_seconds":600,"request_release":{"within_seconds":0.5}}`))
	told := s.wants("lock.release_requested orders:42", "lock.release_requested orders:42")
	if a := told[0].Data.Data.Asked; a == nil || a.WithinSeconds != 30 ||
		!a.WishedAt.Equal(a.Since.Add(30*time.Second)) || told[0].Data.Data.Entry.ID != first.ID {
		t.Errorf("the event is %+v", told[0])
	}
	if d := told[1].Data.Data; d.Asked == nil || d.Asked.WithinSeconds != 0.5 ||
		!d.Asked.Since.Equal(d.Entry.EnqueuedAt.Time) || d.Held != nil {
		t.Errorf("the other event is %+v", d)
	}
	since := told[0].Data.Data.Asked.Since
	for _, a := range []*answer{
		c.at(shared.other).put("/locks/orders:42/renew", lockToken(held.Token)),
		c.get(entryPath(held), lockToken(held.Token)),
	} {
		got := a.held(http.StatusOK).Asked
		if got == nil || got.By != "b" || got.Waiting != 2 || !got.Since.Equal(since.Time) ||
			!got.WishedAt.Equal(told[1].Data.Data.Asked.WishedAt.Time) {
			t.Errorf("the holder is told %+v", got)
		}
	}
	if got := c.get(entryPath(first), lockToken(first.Token)).waiting(
		http.StatusOK,
	).Asked; got != nil {
		t.Errorf("a waiter is told %+v", got)
	}
	shown := func(who *client, path string) *asked {
		var v struct {
			Asked *asked `json:"release_requested"`
		}
		if err := json.Unmarshal(who.get(path).body, &v); err != nil {
			t.Fatal(err)
		}
		return v.Asked
	}
	for who, path := range map[*client]string{
		c: "/locks/orders:42", c.operator(): "/admin/locks/" + c.claims.Tenant + "/orders:42",
	} {
		if got := shown(who, path); got == nil || got.By != "b" || got.Waiting != 2 {
			t.Errorf("%s tells %+v", path, got)
		}
	}
	c.release(first)
	second.cancel()
	poll.Until(t, "nobody asks any more", func() bool {
		return c.put("/locks/orders:42/renew", lockToken(held.Token)).held(http.StatusOK).Asked == nil &&
			shown(c, "/locks/orders:42") == nil
	})
}

// TestRequestReleaseForASet: the holders of the locks for which a set waits are asked, and no
// others.
func TestRequestReleaseForASet(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events?types=lock.release_requested")
	limited := c.within("b").follow("/events?types=lock.release_requested")
	held := c.acquire("a", body(`{"ttl_seconds":600}`))
	waits := c.named("b").at(shared.brief).post("/locksets", body(
		`{"ttl_seconds":600,"wait_seconds":600,"request_release":{},"locks":[{"name":"b"},`+
			`{"name":"a"}]}`,
	)).set(http.StatusAccepted, "waiting")
	e := s.wants("lock.release_requested a")[0].Data.Data.Entry
	if len(e.Locks) != 1 || e.ID != waits.ID {
		t.Errorf("the event is about %+v, want the lock for which it waits", e)
	}
	limited.wants()
	if got := c.put("/locks/a/renew", lockToken(held.Token)).held(http.StatusOK).Asked; got == nil ||
		got.Waiting != 1 {
		t.Errorf("the holder is told %+v", got)
	}
	set := c.acquireSet(`{"ttl_seconds":600,"locks":[{"name":"x"},{"name":"y"}]}`)
	p := c.join("y", body(`{"wait_seconds":600,"request_release":{}}`))
	poll.Until(t, "the holder of a set is told", func() bool {
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
		`{"request_release":{}}`: invalid("request_release", "needs wait_seconds above 0"),

		`{"wait_seconds":1,"request_release":{"within_seconds":-1}}`:  within,
		`{"wait_seconds":1,"request_release":{"within_seconds":1e9}}`: within,
		`{"wait_seconds":1,"request_release":{"within_seconds":"1"}}`: invalid(
			"request_release.within_seconds", "must be a number",
		),
		`{"wait_seconds":1,"request_release":{"within":1}}`: meant(
			unknown("request_release.within"), "within_seconds",
		),
		`{"wait_seconds":1,"request_release":{"Within_Seconds":1}}`: meant(
			unknown("request_release.Within_Seconds"), "within_seconds",
		),
		`{"wait_seconds":1,"request_release":true}`: invalid("request_release", "must be an object"),
		`{"wait_seconds":1,"async":true,"request_release":[{"a":"b"}]}`: invalid(
			"request_release", "must be an object",
		),
	} {
		c.post("/locks/a", body(text), loose).wantProblem(want)
	}
}
