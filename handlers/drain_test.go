package handlers_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// TestDrainEndsWaits: a replica that shuts down sends its waiters on, and each can go on
// waiting elsewhere in its place.
func TestDrainEndsWaits(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	leaving := newReplica(t, func(*service.Config) {})
	first := c.at(leaving).acquire("orders:42")
	inKey := c.named("a").at(leaving).join("orders:42", key("k"))
	plain := c.named("b").at(leaving).join("orders:42")
	e := c.named("c").at(shared.brief).post("/locks/orders:42", body(`{"wait_seconds":60}`)).
		waiting(http.StatusAccepted)
	look := c.named("c").at(leaving).start("GET", entryPath(e)+"?wait_seconds=20", lockToken(e.Token))
	poll.Until(t, "the GET waits", func() bool { return waitsOn(c, e) })

	drained := time.Now()
	leaving.service.Drain()
	answers := []*answer{inKey.wait(), plain.wait(), look.wait()}
	var entries []entry
	for i, a := range answers {
		entries = append(entries, a.resumable([]string{"a", "b", "c"}[i], drained))
	}
	if entries[2].ID != e.ID || entries[2].Token != e.Token {
		t.Errorf("the GET of %s was answered with the entry %s", e.ID, entries[2].ID)
	}
	c.checkQueue("orders:42", first, []string{"a", "b", "c"})

	resumed := []*pending{
		c.named("a").start("POST", "/locks/orders:42", body(`{"wait_seconds":60}`), key("k")),
		c.start("GET", entryPath(entries[1])+"?wait_seconds=20", lockToken(entries[1].Token)),
		c.start("GET", entryPath(entries[2])+"?wait_seconds=20", lockToken(entries[2].Token)),
	}
	last := first
	for i, p := range resumed {
		c.release(last)
		a := p.wait()
		last = a.held(map[bool]int{true: http.StatusCreated, false: http.StatusOK}[i == 0])
		if last.ID != entries[i].ID || last.Token != entries[i].Token {
			t.Errorf("%d resumed as %s, want %s", i, last.ID, entries[i].ID)
		}
	}
}

// waitsOn reports whether a request keeps the entry's lease alive.
func waitsOn(c *client, e entry) bool {
	return c.get(entryPath(e), lockToken(e.Token)).waiting(http.StatusOK).
		ExpiresAt.After(e.ExpiresAt.Time)
}

// resumable checks a 503 of a waiting request, sent after drained, and returns the entry to go on
// with.
func (a *answer) resumable(holder string, drained time.Time) entry {
	a.t.Helper()
	a.wantDraining("entry")
	var body struct {
		Entry entry `json:"entry"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		a.t.Fatalf("%v: %v", a, err)
	}
	want := entry{
		Name: "orders:42", State: "waiting", Mode: "exclusive", Holder: holder, TTLSeconds: ptr(30.0),
	}
	random := cmpopts.IgnoreFields(
		entry{}, "ID", "Token", "ExpiresAt", "EnqueuedAt", "Position", "WaitUntil",
	)
	if diff := cmp.Diff(want, body.Entry, random); diff != "" {
		a.t.Errorf("%v (-want +got)\n%s", a, diff)
	}
	if got := a.header.Get("Location"); got != entryPath(body.Entry) {
		a.t.Errorf("%v: Location = %q, want %q", a, got, entryPath(body.Entry))
	}
	if left := body.Entry.ExpiresAt.Sub(drained); left < 29*time.Second {
		a.t.Errorf("%v: %v are left to resume, want a full TTL", a, left)
	}
	shared.secrets.add(body.Entry.Token)
	return body.Entry
}

// TestDrainingReplicaTakesNoNewEntry: a replica that shuts down takes no new entry, and lets every
// client release.
func TestDrainingReplicaTakesNoNewEntry(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	held, free := c.acquire("held"), c.acquire("free")
	waiting := c.at(shared.brief).post("/locks/held", body(`{"wait_seconds":60}`)).
		waiting(http.StatusAccepted)
	leaving := newReplica(t, func(*service.Config) {})
	leaving.service.Drain()
	d := c.at(leaving)
	d.post("/locks/orders:42").wantDraining()
	d.post("/locks/held", body(`{"wait_seconds":60}`)).wantDraining()
	d.post("/locks/held", key("k")).wantDraining()
	d.get(entryPath(waiting)+"?wait_seconds=20", lockToken(waiting.Token)).wantDraining("entry")
	d.get(entryPath(waiting), lockToken(waiting.Token)).waiting(http.StatusOK)
	d.put("/locks/held/renew", lockToken(held.Token)).held(http.StatusOK)
	d.release(free)
	d.list("consistent=true")
	if v := d.look("orders:42"); len(v.Holders) != 0 {
		t.Errorf("a refused request left %+v", v.Holders)
	}
}
