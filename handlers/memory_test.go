package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
)

// noRoom is a server that has no memory for new work.
type noRoom struct{}

func (noRoom) Full() bool { return true }

// TestNoMemory: new work is refused before anything is done for it, and what is there goes on.
func TestNoMemory(t *testing.T) {
	t.Parallel()
	h := shared.handlers(shared.main.service)
	h.Console, h.Memory = shared.main.console, noRoom{}
	server := httptest.NewServer(handlers.New(h))
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(r.close)
	c := newTenant(t)
	held, waits := c.acquire("a"), c.at(shared.brief).post("/locks/a", body(`{"wait_seconds":60}`)).waiting(http.StatusAccepted)
	full := problem{code: "memory_full", detail: "the server has no memory for new work; what is held can be renewed and released"}
	for _, a := range []*answer{
		c.at(r).post("/locks/b"), c.at(r).post("/locksets", body(`{"locks":[{"name":"b"}]}`)), c.at(r).get("/locks"), c.at(r).get("/events"),
	} {
		a.wantProblem(full, "may_have_taken_effect")
		if a.fields()["may_have_taken_effect"] != false || a.header.Get("Retry-After") != "2" {
			t.Errorf("%v %v", a, a.header)
		}
	}
	c.at(r).get(entryPath(waits), lockToken(waits.Token)).wantStatus(http.StatusOK)
	c.at(r).put("/locks/a/renew", lockToken(held.Token)).wantStatus(http.StatusOK)
	c.at(r).delete("/locks/a", lockToken(held.Token)).wantStatus(http.StatusNoContent)
	c.at(r).as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.Admin} }).get("/admin/deadlocks").wantStatus(http.StatusOK)
	c.at(r).get("/healthz").wantStatus(http.StatusOK)
}

// known is what a client has to know of an entry.
type known struct{ ID, Token string }

// known is what the answer tells, if it has the status.
func (a *answer) known(status int) known {
	a.t.Helper()
	a.wantStatus(status)
	fields := a.fields()
	return known{fmt.Sprint(fields["id"]), fmt.Sprint(fields["token"])}
}

// TestKeyGoesOnWithoutMemory: who lost the answer of a request that waits gets his place back by its key, though the
// server has no memory for new work.
func TestKeyGoesOnWithoutMemory(t *testing.T) {
	t.Parallel()
	h := shared.handlers(shared.main.service)
	h.Memory = noRoom{}
	server := httptest.NewServer(handlers.New(h))
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(r.close)
	c := newTenant(t)
	c.acquire("a")
	const terms = `"wait_seconds":600,"ttl_seconds":60,"async":true`
	for path, text := range map[string]string{"/locks/a": `{` + terms + `}`, "/locksets": `{"locks":[{"name":"a"}],` + terms + `}`} {
		first := c.post(path, body(text), key("k")).known(http.StatusAccepted)
		var last *answer
		eventually(t, "the replica sees the entry", func() bool {
			last = c.at(r).post(path, body(text), key("k"))
			return last.status != http.StatusServiceUnavailable
		})
		if again := last.known(http.StatusAccepted); again != first {
			t.Errorf("%s: the key has %+v, and then %+v", path, first, again)
		}
		c.at(r).post(path, body(strings.Replace(text, "600", "599", 1)), key("k")).wantStatus(http.StatusConflict)
		for _, other := range [][]option{{key("other")}, {}, {key(""), loose}} {
			c.at(r).post(path, append(other, body(text))...).wantStatus(http.StatusServiceUnavailable)
		}
		newTenant(t).at(r).post(path, body(text), key("k")).wantStatus(http.StatusServiceUnavailable)
	}
}
