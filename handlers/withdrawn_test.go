package handlers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// withdrawing is a replica with a key set of its own. withdraw takes the one key out of it that
// signs the tokens of the clients.
func withdrawing(t *testing.T) (r *replica, withdraw func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	write := func(keys []any) {
		t.Helper()
		if err := os.WriteFile(
			path, must(json.Marshal(map[string]any{"keys": keys})), 0o600,
		); err != nil {
			t.Fatal(err)
		}
	}
	write([]any{jwk(edKey().Public(), "EdDSA", "ed-1"), jwk(ecKey().Public(), "ES256", "ec-1")})
	v, err := auth.New(t.Context(), auth.Config{
		Secret: secret(), JWKS: path, Issuer: issuer, Audience: audience, Refresh: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	sessions, err := auth.NewSessions(secret(), nil, v)
	if err != nil {
		t.Fatal(err)
	}
	r = streaming(
		t, func(*service.Config) {}, func(h *handlers.Config) { h.Verifier, h.Sessions = v, sessions },
	)
	return r, func() { t.Helper(); write([]any{jwk(ecKey().Public(), "ES256", "ec-1")}) }
}

// TestWaitsEndWithTheirCredential: a request that waits is not granted to a token whose key was
// withdrawn, and its entry leaves the queue as that of a client that disconnects.
func TestWaitsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	r, withdraw := withdrawing(t)
	holder := newTenant(t).at(r)
	tenant := holder.claims.Tenant
	worker := holder.with(sign(tenant, jwt.SigningMethodEdDSA, "ed-1", edKey(), nil))
	first := holder.acquire("orders:1")
	holder.acquire("orders:2")
	entry := holder.at(shared.brief).post("/locks/orders:2", body(`{"wait_seconds":60}`)).
		waiting(http.StatusAccepted)
	waits := map[string]*pending{
		"acquire": worker.start("POST", "/locks/orders:1", body(`{"wait_seconds":60}`)),
		"keyed":   worker.start("POST", "/locks/orders:1", body(`{"wait_seconds":60}`), key("k")),
		"entry":   worker.start("GET", entryPath(entry)+"?wait_seconds=50", lockToken(entry.Token)),
		"set": worker.start(
			"POST", "/locksets",
			body(`{"locks":[{"name":"orders:1"},{"name":"orders:3"}],"wait_seconds":60}`),
		),
	}
	stays := holder.named("stays").start("POST", "/locks/orders:1", body(`{"wait_seconds":60}`))
	waiters := func() int { return len(holder.look("orders:1").Waiters) }
	poll.Until(t, "all wait", func() bool { return waiters() == 4 && waitsOn(holder, entry) })
	withdraw()
	for name, p := range waits {
		a := p.wait()
		a.wantProblem(unauthenticated("the credential of the caller was withdrawn; get a new one"))
		if a.header.Get("WWW-Authenticate") == "" || a.header.Get("Location") != "" {
			t.Errorf("%s: %v has the headers %v", name, a, a.header)
		}
	}
	poll.Until(
		t, "only the entry that its key can resume is left", func() bool { return waiters() == 2 },
	)
	worker.get("/locks").wantProblem(badBearer("the key set has no key with this kid and algorithm"))
	renewed := holder.with(sign(tenant, jwt.SigningMethodES256, "ec-1", ecKey(), nil))
	resumed := renewed.start("POST", "/locks/orders:1", body(`{"wait_seconds":60}`), key("k"))
	holder.release(first)
	var last *pending
	poll.Until(t, "one of two is granted", func() bool {
		for _, p := range []*pending{resumed, stays} {
			if last = p; p.answered() {
				return true
			}
		}
		return false
	})
	holder.release(last.wait().held(http.StatusCreated))
	for _, p := range []*pending{resumed, stays} {
		p.wait().held(http.StatusCreated)
	}
}

// TestSlowBodyOfAWithdrawnCredential: a request whose body is still on its way when the key of its
// token is withdrawn takes no lock.
func TestSlowBodyOfAWithdrawnCredential(t *testing.T) {
	t.Parallel()
	r, withdraw := withdrawing(t)
	r.transport.ExpectContinueTimeout = time.Minute
	holder := newTenant(t).at(r)
	worker := holder.with(sign(holder.claims.Tenant, jwt.SigningMethodEdDSA, "ed-1", edKey(), nil))
	in, out := io.Pipe()
	p := worker.start("POST", "/locks/orders:1", func(req *request) {
		req.Body, req.ContentLength, req.loose = in, -1, true
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Expect", "100-continue")
	})
	// The server asks for the body when it has admitted the request; only then does out take it.
	if _, err := out.Write([]byte(`{"ttl_seconds":`)); err != nil {
		t.Fatal(err)
	}
	withdraw()
	poll.Until(
		t, "the key is gone",
		func() bool { return worker.get("/locks").status == http.StatusUnauthorized },
	)
	if _, err := out.Write([]byte(`30}`)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close() // never fails
	p.wait().wantProblem(unauthenticated("the credential of the caller was withdrawn; get a new one"))
	if v := holder.look("orders:1"); len(v.Holders) != 0 {
		t.Errorf("it holds: %+v", v)
	}
}

// TestStreamsEndWithTheirCredential: a stream of events ends when the key of its token was
// withdrawn, and so does one of a session that this token began.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	r, withdraw := withdrawing(t)
	c := newOperator(t).at(r)
	scopes := map[string]any{"scope": "locks:read admin"}
	leaves := c.with(sign(c.claims.Tenant, jwt.SigningMethodEdDSA, "ed-1", edKey(), scopes))
	other := c.with(sign(c.claims.Tenant, jwt.SigningMethodES256, "ec-1", ecKey(), scopes))
	page, cookie := leaves.signedIn()
	otherPage, otherCookie := other.signedIn()
	ends := map[string]*stream{
		"tenant": leaves.follow("/events"), "operators": leaves.follow("/admin/events"),
		"session": page.follow("/admin/events", bearing(cookie)),
	}
	goOn := []*stream{
		other.follow("/events"),
		otherPage.follow("/admin/events?tenant="+c.claims.Tenant, bearing(otherCookie)),
	}
	withdraw()
	for name, s := range ends {
		if s.wantEnd(); s.lastComment() != "the credential of the caller was withdrawn; get a new one" {
			t.Errorf("%s: the stream ended with %q", name, s.lastComment())
		}
	}
	page.get("/dashboard/session", bearing(cookie)).wantProblem(
		notSignedIn("the credential that the session began with was withdrawn; sign in again"),
	)
	newTenantOf(t, c).acquire("orders:1")
	for _, s := range goOn {
		s.wants("lock.acquired orders:1")
	}
}

// newTenantOf returns a worker of the operator's tenant, at its replica.
func newTenantOf(t *testing.T, c *client) *client {
	t.Helper()
	return c.as(func(cl *auth.Claims) { cl.Scopes = []auth.Scope{auth.LocksWrite, auth.LocksRead} })
}
