package handlers_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
)

func (a *answer) wantReplayed(want bool) *answer {
	a.t.Helper()
	if got := a.header.Get("Idempotency-Replayed"); (got == "true") != want || !want && got != "" {
		a.t.Errorf("%v: Idempotency-Replayed = %q, want it %t", a, got, want)
	}
	return a
}

// TestAnswerByItsKeySaysSo: of an entry that holds, waits, or has ended, at each replica.
func TestAnswerByItsKeySaysSo(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.post("/locks/a", key("k")).wantReplayed(false).held(http.StatusCreated)
	c.post("/locks/a", key("k")).wantReplayed(true).held(http.StatusCreated)
	c.at(shared.brief).post("/locks/a", key("k")).wantReplayed(true).held(http.StatusCreated)
	c.post("/locks/a", key("k"), body(`{"ttl_seconds":7}`)).wantReplayed(false).
		wantStatus(http.StatusConflict)

	waits := body(`{"async":true,"wait_seconds":60}`)
	c.post("/locks/a", key("w"), waits).wantReplayed(false).waiting(http.StatusAccepted)
	c.post("/locks/a", key("w"), waits).wantReplayed(true).waiting(http.StatusAccepted)
	two := body(`{"locks":[{"name":"b"},{"name":"c"}]}`)
	c.post("/locksets", key("s"), two).wantReplayed(false).set(http.StatusCreated, "held")
	c.post("/locksets", key("s"), two).wantReplayed(true).set(http.StatusCreated, "held")

	c.release(first)
	c.post("/locks/a", key("k")).wantReplayed(true).goneBecause("released")
	c.at(shared.brief).post("/locks/a", key("k")).wantReplayed(true).goneBecause("released")
}

// TestPreferenceThatCannotBeHonoured is ignored: a lease is too short to be kept, or the request
// does not wait.
func TestPreferenceThatCannotBeHonoured(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	prefer := header("Prefer", "respond-async")
	for name, text := range map[string]string{"a": `{"ttl_seconds":5,"wait_seconds":60}`, "b": `{}`} {
		a := c.post("/locks/"+name, body(text), prefer)
		if a.held(http.StatusCreated); a.header.Get("Preference-Applied") != "" {
			t.Errorf("%v: applied", a)
		}
	}
	c.post("/locks/a", body(`{"ttl_seconds":5,"wait_seconds":60,"async":true}`), prefer).
		wantStatus(http.StatusBadRequest)
}

// TestLookingAtAnEntryIsAlways200: 202 is for what a POST leaves waiting.
func TestLookingAtAnEntryIsAlways200(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.acquire("a")
	asked := time.Now()
	e := c.post("/locks/a", body(`{"async":true,"wait_seconds":600}`)).waiting(http.StatusAccepted)
	if left := e.WaitUntil.Sub(asked); left < 599*time.Second || left > 610*time.Second {
		t.Errorf("wait_until is %v from the request, want 600 s", left)
	}
	c.get(entryPath(e), lockToken(e.Token)).waiting(http.StatusOK)
	c.at(shared.brief).get(entryPath(e)+"?wait_seconds=1", lockToken(e.Token)).waiting(http.StatusOK)
	s := c.post(
		"/locksets", body(`{"locks":[{"name":"a"},{"name":"b"}],"async":true,"wait_seconds":600}`),
	).set(http.StatusAccepted, "waiting")
	if s.WaitUntil.IsZero() {
		t.Error("a set has no wait_until")
	}
	c.get("/locksets/"+s.ID+"?wait_seconds=0.1", lockToken(s.Token)).set(http.StatusOK, "waiting")
}

// TestRevokedSaysWhy: the client of a revoked entry gets the reason at each replica, and by its
// key.
func TestRevokedSaysWhy(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	e := c.acquire("a", key("k"))
	c.operator().named("ops").at(shared.other).post(c.revokePath(e), seenAs(*e.Fence)).
		wantStatus(http.StatusOK)
	for _, r := range []*replica{shared.main, shared.brief, shared.other} {
		for _, a := range []*answer{
			c.at(r).put("/locks/a/renew", lockToken(e.Token)),
			c.at(r).delete("/locks/a", lockToken(e.Token)),
			c.at(r).get(entryPath(e), lockToken(e.Token)), c.at(r).post("/locks/a", key("k")),
		} {
			if a.goneBecause("revoked"); a.fields()["revoke_reason"] != explanation {
				t.Errorf("%v: want the operator's reason", a)
			}
		}
	}
	other := c.acquire("a")
	c.release(other)
	if a := c.put("/locks/a/renew", lockToken(other.Token)); a.fields()["revoke_reason"] != nil {
		t.Errorf("%v: want no revoke_reason", a)
	}
}

// TestStoreThatLostItsPast has a code of its own.
func TestStoreThatLostItsPast(t *testing.T) {
	t.Parallel()
	lost := &lock.Error{Code: lock.FenceFloorRequired, Detail: "it did", RetryAfter: time.Minute}
	a := over(t, &stub{err: lost}).post("/locks/a")
	a.wantProblem(problem{code: "fence_floor_required", detail: "it did"}, "may_have_taken_effect")
	if a.header.Get("Retry-After") != "60" {
		t.Errorf("%v: Retry-After = %q", a, a.header.Get("Retry-After"))
	}
}

// TestSuggestions: a refusal says what was probably meant.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for text, want := range map[string]problem{
		`{"waitSeconds":5}`:        meant(unknown("waitSeconds"), "wait_seconds"),
		`{"ttl":5}`:                meant(unknown("ttl"), "ttl_seconds"),
		`{"hodler":"w"}`:           meant(unknown("hodler"), "holder"),
		`{"priority":1}`:           unknown("priority"),
		`{"x":1}`:                  unknown("x"),
		`{"locks":[{"name":"a"}]}`: unknown("locks"),
		`{"` + strings.Repeat("a", 9000) + `":1}`: malformed("a field of the body is not known here; leave it out"),
	} {
		c.post("/locks/a", body(text), loose).wantProblem(want)
	}
	for text, want := range map[string]problem{
		`{"locks":["a","b"]}`:                  invalid("locks[0]", "must be an object"),
		`{"locks":"a"}`:                        invalid("locks", "must be a list"),
		`{"locks":{"name":"a"}}`:               invalid("locks", "must be a list"),
		`{"locks":[{"nmae":"a"}]}`:             meant(unknown("locks[0].nmae"), "name"),
		`{"lock":[{"name":"a"},{"name":"b"}]}`: meant(unknown("lock"), "locks"),
		`{"locks":[{"name":"a","Limit":1}]}`:   meant(unknown("locks[0].Limit"), "limit"),
	} {
		c.post("/locksets", body(text), loose).wantProblem(want)
	}
	c.get("/locks?prefx=a", loose).wantProblem(meant(invalid("prefx", notAParameter), "prefix"))
	c.get("/locks?zzz=a", loose).wantProblem(invalid("zzz", notAParameter))
	for _, prefix := range []string{"orders:*", "*"} {
		c.get("/locks?prefix="+prefix, loose).
			wantProblem(invalid("prefix", "is the beginning of names: leave out the star"))
	}
	c.get("/locks?prefix=o*s", loose).
		wantProblem(invalid("prefix", "must be how a lock name begins: a letter or digit, then also . "+
			"_ : @ = + -"))
}

// TestRetryAfterAHeldLock is about when the first lease ends, from 1 to 30 s.
func TestRetryAfterAHeldLock(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.acquire("short", body(`{"ttl_seconds":17,"mode":"shared"}`))
	c.acquire("short", body(`{"ttl_seconds":600,"mode":"shared"}`))
	c.acquire("long", body(`{"ttl_seconds":600}`))
	seen := map[string]bool{}
	for range 30 {
		for name, bounds := range map[string][2]int{"short": {1, 22}, "long": {24, 30}} {
			a := c.post("/locks/" + name)
			a.wantStatus(http.StatusLocked)
			text := a.header.Get("Retry-After")
			after, err := strconv.Atoi(text)
			if seen[name+text] = true; err != nil || after < bounds[0] || after > bounds[1] {
				t.Errorf("%s: Retry-After = %q, want from %d to %d s", name, text, bounds[0], bounds[1])
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("all are to come again at once: %v", seen)
	}
}

// TestTypeOfAProblemIsAPage: the type of a problem is the path of a page that explains its code.
func TestTypeOfAProblemIsAPage(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for code := range kinds() {
		a := c.get("/problems/" + code)
		a.wantStatus(http.StatusOK)
		if text := string(a.body); !strings.Contains(text, kinds()[code].title) ||
			!strings.Contains(text, code) {
			t.Errorf("%s: %s", code, text)
		}
	}
	for _, code := range []string{"nothing", "%3Cscript%3E", "INTERNAL"} {
		c.get("/problems/"+code, loose).wantStatus(http.StatusNotFound)
	}
	held, _ := c.get("/nowhere", loose).fields()["type"].(string)
	c.get(held).wantStatus(http.StatusOK)
}
