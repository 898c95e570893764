package handlers_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/test/poll"
)

// TestRenewRestartsTheLease: a renewal restarts the lease, and changes nothing else.
func TestRenewRestartsTheLease(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("orders:42", body(`{"ttl_seconds":6,"holder":"w","metadata":{"a":"b"}}`))
	for began := time.Now(); time.Since(began) < 8*time.Second; { // longer than the TTL
		poll.Until(
			t, "some of the TTL has passed",
			func() bool { return time.Until(e.ExpiresAt.Time) < 4*time.Second },
		)
		a := c.put("/locks/orders:42/renew", lockToken(e.Token))
		again := a.held(http.StatusOK)
		a.wantFullTTL(again, 0)
		if !again.ExpiresAt.After(e.ExpiresAt.Time) {
			t.Errorf("expires_at = %v after %v", again.ExpiresAt, e.ExpiresAt)
		}
		changing := cmpopts.IgnoreFields(entry{}, "ExpiresAt", "WaitedSeconds")
		if diff := cmp.Diff(e, again, changing); diff != "" {
			t.Errorf("(-acquired +renewed)\n%s", diff)
		}
		e.ExpiresAt = again.ExpiresAt
	}
	c.at(shared.brief).put("/locks/orders:42/renew", lockToken(e.Token), body(`{}`), loose).
		held(http.StatusOK)
	c.release(e)
	c.put("/locks/orders:42/renew", lockToken(e.Token)).wantProblem(lost("released"))
}

// TestWaiterCanBeRenewed: the client of a waiter can renew it between requests, and it keeps its
// position.
func TestWaiterCanBeRenewed(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:42")
	second := c.named("b").at(shared.brief)
	e := second.post("/locks/orders:42", body(`{"ttl_seconds":6,"wait_seconds":60}`)).
		waiting(http.StatusAccepted)
	c.named("c").join("orders:42")
	for began := time.Now(); time.Since(began) < 8*time.Second; {
		poll.Until(
			t, "some of the TTL has passed",
			func() bool { return time.Until(e.ExpiresAt.Time) < 4*time.Second },
		)
		a := second.put("/locks/orders:42/renew", lockToken(e.Token))
		again := a.waiting(http.StatusOK)
		a.wantFullTTL(again, 0)
		if again.ID != e.ID || *again.Position != 1 {
			t.Fatalf("renewed as %+v, want %s at position 1", again, e.ID)
		}
		e = again
	}
	c.checkQueue("orders:42", first, []string{"b", "c"})
	c.release(first)
	if got := second.get(entryPath(e)+"?wait_seconds=5", lockToken(e.Token)).held(
		http.StatusOK,
	); *got.Fence <= *first.Fence {
		t.Errorf("fence %d after %d", *got.Fence, *first.Fence)
	}
}

// TestReleaseIsKnownOnEveryReplica: once, and then it is known to be gone, on every replica.
func TestReleaseIsKnownOnEveryReplica(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("orders:42")
	a := c.delete("/locks/orders:42", lockToken(e.Token), body(`{}`), loose)
	a.wantNoContent()
	if got := a.header.Get("Content-Type"); got != "" || len(a.body) != 0 {
		t.Errorf("%v: Content-Type = %q, want nothing", a, got)
	}
	for range 2 {
		c.delete("/locks/orders:42", lockToken(e.Token)).wantProblem(lost("released"))
		c.at(shared.brief).delete("/locks/orders:42", lockToken(e.Token)).wantProblem(lost("released"))
	}
	next := c.acquire("orders:42")
	for _, late := range []*client{c, c.at(shared.brief)} { // the old token changes nothing
		late.delete("/locks/orders:42", lockToken(e.Token)).wantProblem(lost("released"))
		late.put("/locks/orders:42/renew", lockToken(e.Token)).wantProblem(lost("released"))
		late.get(entryPath(e), lockToken(e.Token)).wantProblem(lost("released"))
		late.get(entryPath(e)+"?wait_seconds=5", lockToken(e.Token)).wantProblem(lost("released"))
	}
	c.checkQueue("orders:42", next, nil)
}

// TestExpiredEntryPassesTheLockOn: an entry that is not renewed expires, the next one holds, and
// its token says why.
func TestExpiredEntryPassesTheLockOn(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("orders:42", body(`{"ttl_seconds":2}`))
	next := c.named("next").join("orders:42").wait().held(http.StatusCreated)
	if early := time.Until(e.ExpiresAt.Time); early > 0 {
		t.Errorf("it passed on %v too early", early)
	}
	for _, at := range []*replica{shared.main, shared.brief} {
		d := c.at(at)
		d.put("/locks/orders:42/renew", lockToken(e.Token)).wantProblem(lost("expired"))
		d.delete("/locks/orders:42", lockToken(e.Token)).wantProblem(lost("expired"))
		d.get(entryPath(e), lockToken(e.Token)).wantProblem(lost("expired"))
		d.get(entryPath(e)+"?wait_seconds=1", lockToken(e.Token)).wantProblem(lost("expired"))
	}
	c.checkQueue("orders:42", next, nil)
	if f := c.look("orders:42").Figures; *f.Expirations != 1 || *f.Acquisitions != 2 {
		t.Errorf("%d expirations of %d acquisitions, want 1 of 2", *f.Expirations, *f.Acquisitions)
	}
}

// TestLookAtAnEntryLeavesItsLease: looking at an entry leaves its lease alone.
func TestLookAtAnEntryLeavesItsLease(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("orders:42", body(`{"holder":"w","metadata":{"a":"b"}}`))
	for _, query := range []string{
		"", "?wait_seconds=0", "?wait_seconds=5", "?wait_seconds=0.001", "?wait_seconds=86400",
	} {
		a := c.get(entryPath(e)+query, lockToken(e.Token), body(`{}`), loose)
		got := a.held(http.StatusOK)
		rough := cmpopts.IgnoreFields(entry{}, "ExpiresAt", "WaitedSeconds")
		if diff := cmp.Diff(e, got, rough); diff != "" {
			t.Errorf("%s (-acquired +seen)\n%s", query, diff)
		}
		if got.ExpiresAt.After(e.ExpiresAt.Add(time.Second)) { // stores may count in whole seconds
			t.Errorf("%s: expires_at = %v, acquired until %v", query, got.ExpiresAt, e.ExpiresAt)
		}
	}
}

// tokenRoutes are the routes that ask for a lock token, for an entry.
func tokenRoutes(e entry) map[string][2]string {
	return map[string][2]string{
		"Renew":     {"PUT", "/locks/" + e.Name + "/renew"},
		"Release":   {"DELETE", "/locks/" + e.Name},
		"Entry":     {"GET", entryPath(e)},
		"EntryWait": {"GET", entryPath(e) + "?wait_seconds=50"},
	}
}

// TestBadTokens: in every route, and none of them touches the entry. What else is wrong with a
// token, the service tests.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	needed := invalid("Lock-Token", "must be sent, once, as a header")
	cases := map[string]struct {
		token func(c *client, e entry) []string
		want  problem
	}{
		"Missing": {func(*client, entry) []string { return nil }, needed},
		"Empty":   {func(*client, entry) []string { return []string{""} }, needed},
		"Twice":   {func(c *client, e entry) []string { return []string{e.Token, e.Token} }, needed},
		"OtherEntry": {
			func(c *client, e entry) []string { return []string{c.acquire("other").Token} }, tokenMismatch(),
		},
		"OtherTenant": {
			func(c *client, e entry) []string { return []string{newTenant(c.t).acquire("orders:42").Token} },
			tokenMismatch(),
		},
		"Garbage": {func(*client, entry) []string { return []string{"garbage"} }, tokenMismatch()},
		"Truncated": {
			func(_ *client, e entry) []string { return []string{e.Token[:len(e.Token)-1]} }, tokenMismatch(),
		},
		"OtherMAC": {
			func(_ *client, e entry) []string { return []string{flip(e.Token, 47)} }, tokenMismatch(),
		},
		"TheEntrysID": {func(_ *client, e entry) []string { return []string{e.ID} }, tokenMismatch()},
		"NotASCII": {
			func(_ *client, e entry) []string { return []string{e.Token[:60] + "é"} }, tokenMismatch(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			e := c.acquire("orders:42")
			token := header("Lock-Token", tc.token(c, e)...)
			for _, r := range tokenRoutes(e) {
				c.do(r[0], r[1], token).wantProblem(tc.want)
			}
			c.put("/locks/orders:42/renew", lockToken(e.Token)).held(http.StatusOK)
		})
	}
}

// flip changes one bit of the n-th byte in a token.
func flip(token string, n int) string {
	raw := must(base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "fp1_")))
	raw[n] ^= 1
	return "fp1_" + base64.RawURLEncoding.EncodeToString(raw)
}

// TestTokenElsewhere: a token is good for its lock and its entry alone, and only
// in its header.
func TestTokenElsewhere(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e, other := c.acquire("orders:42"), c.acquire("orders:43")
	c.put("/locks/orders:43/renew", lockToken(e.Token)).wantProblem(tokenMismatch())
	c.delete("/locks/orders:43", lockToken(e.Token)).wantProblem(tokenMismatch())
	c.delete("/locks/orders:4", lockToken(e.Token)).wantProblem(tokenMismatch())
	c.delete("/locks/free", lockToken(e.Token)).wantProblem(tokenMismatch())
	for _, id := range []string{
		other.ID, "x", strings.Repeat("0", 26), strings.ToUpper(e.ID), e.ID + "0", "%00", "%2e%2e",
	} {
		c.get("/locks/orders:42/entries/"+id, lockToken(e.Token)).wantProblem(tokenMismatch())
		c.get("/locks/orders:42/entries/"+id+"?wait_seconds=5", lockToken(e.Token)).
			wantProblem(tokenMismatch())
	}
	c.delete("/locks/orders:42?Lock-Token=" + e.Token).
		wantProblem(invalid("Lock-Token", notAParameter))
	c.delete("/locks/orders:42?" + e.Token).
		wantProblem(problem{code: "invalid_request", detail: "a query parameter is not known here; leave it out"})
	c.delete("/locks/orders:42", body(`{"token":"`+e.Token+`"}`)).
		wantProblem(invalid("token", "is not known here; leave it out"))
	for _, held := range []entry{e, other} {
		c.get(entryPath(held), lockToken(held.Token)).held(http.StatusOK)
	}
}

func TestBadWaitsAreRefused(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("orders:42")
	for _, text := range []string{
		"", "x", "-1", "-0.0001", "0x1p-2", "1_0", "%2B1", "01", ".5", "86400.0000000001",
		"1e99999999999", "-0.001", "86400.1", "1e308", "1e309", "-1e309", "NaN", "Inf", "-Inf", "1,5",
		"1s", "%F0%9F%94%92", "0x", "true", "null",
	} {
		want := invalid("wait_seconds", "must be a number from 0 to 86400")
		c.get(entryPath(e)+"?wait_seconds="+text, lockToken(e.Token)).wantProblem(want)
	}
	for _, text := range []string{"0.0001", "1.0", "5e-1", "1E-99999999999", "-0", "86400.000"} {
		c.get(entryPath(e)+"?wait_seconds="+text, lockToken(e.Token)).held(http.StatusOK)
	}
}
