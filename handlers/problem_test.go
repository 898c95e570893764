package handlers_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// kind is how a code appears, as clients know it.
type kind struct {
	status int
	title  string
}

// kinds are the codes that the contract names, and no others.
func kinds() map[string]kind {
	return map[string]kind{
		"invalid_request":        {400, "The request is not valid"},
		"invalid_name":           {400, "The lock name is not valid"},
		"unauthenticated":        {401, "The caller is not known"},
		"forbidden":              {403, "The caller may not do this"},
		"token_mismatch":         {403, "The lock token does not belong to this entry"},
		"not_found":              {404, "Not found"},
		"method_not_allowed":     {405, "Method not allowed"},
		"idempotency_mismatch":   {409, "The idempotency key was used with other parameters"},
		"mode_mismatch":          {409, "The lock is in use in another mode"},
		"deadlock":               {409, "Waiting would close a cycle"},
		"superseded":             {409, "A later request waits"},
		"changed":                {409, "It has changed meanwhile"},
		"no_callback_secret":     {409, "There is no callback secret"},
		"lock_lost":              {410, "The entry is gone"},
		"body_too_large":         {413, "The body is too large"},
		"unsupported_media_type": {415, "The body is not JSON"},
		"lock_held":              {423, "The lock is held"},
		"lock_closed":            {423, "The lock is closed"},
		"wait_timeout":           {423, "The lock was not granted in time"},
		"rate_limited":           {429, "Too many requests"},
		"quota_exceeded":         {429, "A quota is used up"},
		"store_unavailable":      {503, "The store is unavailable"},
		"overloaded":             {429, "The server is overloaded"},
		"draining":               {503, "The replica is shutting down"},
		"fence_floor_required":   {503, "The store lost its past and needs a fence floor"},
		"internal":               {500, "Internal error"},
	}
}

// problem is what an answer has to say, besides what follows from the code.
type problem struct {
	code, detail  string
	field, reason string
}

const (
	badName = "a lock name is 1 to 200 of the characters A-Z a-z 0-9 . _ : @ = + - and begins " +
		"with a letter or a digit"
	mismatch      = "the lock token does not belong to this entry; send the one that its acquire returned"
	notAParameter = "is not known here as a query parameter; leave it out"
	suchURL       = "; send one such as https://example.com/hook"
	notJSON       = "the body is not valid JSON; send one JSON object"
	notObject     = "the body must be a JSON object"

	heldDetail = "others hold the lock or wait for it; " +
		"retry after Retry-After, or queue with wait_seconds"
	timeoutDetail = "others were in front for all of wait_seconds, and the request left the queue; " +
		"retry or wait longer"
)

func invalid(field, rest string) problem {
	return problem{code: "invalid_request", detail: field + " " + rest, field: field}
}

func unknown(field string) problem { return invalid(field, "is not known here; leave it out") }

// meant is a problem that suggests another name.
func meant(p problem, name string) problem {
	p.detail = strings.TrimSuffix(p.detail, "; leave it out") + "; did you mean " + name + "?"
	return p
}

func malformed(detail string) problem { return problem{code: "invalid_request", detail: detail} }

func lost(reason string) problem {
	return problem{code: "lock_lost", detail: "the entry is gone: " + reason +
		"; stop what it protects, then acquire again with a new Idempotency-Key", reason: reason}
}

func invalidName() problem   { return problem{code: "invalid_name", detail: badName} }
func tokenMismatch() problem { return problem{code: "token_mismatch", detail: mismatch} }
func otherNames(than string) problem {
	return problem{code: "forbidden", detail: "the caller is limited to other lock names than " +
		than + "; use a credential that covers it"}
}

func nothingHere() problem {
	return problem{code: "not_found", detail: "there is nothing at this path; /docs/ lists the paths"}
}

func ownTenantOnly() problem {
	return problem{
		code:   "forbidden",
		detail: "the caller is limited to its own tenant; use a credential with the scope admin",
	}
}

func noTenant() problem {
	return invalid("tenant", "must be a tenant: 1 to 63 lower-case letters, digits and hyphens, "+
		"with no hyphen first")
}

func tooMany(kind string) problem {
	return problem{
		code: "overloaded", detail: "too many " + kind + " are under way; retry after Retry-After",
	}
}

func lacks(scope string) problem {
	return problem{code: "forbidden", detail: "the caller lacks the scope " + scope +
		"; use a credential that has it"}
}

// wantProblem compares the whole problem document. The fields besides have to be
// there too; the caller looks into them.
func (a *answer) wantProblem(want problem, besides ...string) {
	a.t.Helper()
	k, known := kinds()[want.code]
	if !known {
		a.t.Fatalf("bug in the test: no code %q", want.code)
	}
	if a.status != k.status {
		a.t.Fatalf("%v, want %d %s", a, k.status, want.code)
	}
	expected := map[string]any{
		"type": "/problems/" + want.code, "title": k.title, "status": json.Number(strconv.Itoa(k.status)),
		"detail": want.detail, "code": want.code, "request_id": a.header.Get("X-Request-Id"),
	}
	for name, value := range map[string]string{"field": want.field, "reason": want.reason} {
		if value != "" {
			expected[name] = value
		}
	}
	got := a.fields()
	for _, name := range besides {
		if _, there := got[name]; !there {
			a.t.Errorf("%v: no field %q", a, name)
		}
		delete(got, name)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		a.t.Errorf("%v (-want +got)\n%s", a, diff)
	}
}

// fields returns the members of the body, numbers as they were written.
func (a *answer) fields() map[string]any {
	a.t.Helper()
	var got map[string]any
	if err := unmarshalNumbers(a.body, &got); err != nil {
		a.t.Fatalf("%v: %v", a, err)
	}
	return got
}

// checkProblem holds a refusal against what is true of all refusals.
func (a *answer) checkProblem() {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("%v: Content-Type = %q, want application/problem+json", a, got)
	}
	if a.method == http.MethodHead {
		return
	}
	got := a.fields()
	code, _ := got["code"].(string)
	k, known := kinds()[code]
	if !known || k.status != a.status {
		a.t.Errorf("%v: code %q is not one of this status", a, code)
	}
	for name, want := range map[string]any{
		"type": "/problems/" + code, "title": k.title,
		"status": json.Number(strconv.Itoa(a.status)), "request_id": a.header.Get("X-Request-Id"),
	} {
		if got[name] != want {
			a.t.Errorf("%v: %s = %v, want %v", a, name, got[name], want)
		}
	}
	if detail, _ := got["detail"].(string); detail == "" {
		a.t.Errorf("%v: no detail", a)
	}
	a.checkRetryAfter()
	a.checkNoSecret(got)
}

// checkRetryAfter: every answer that asks for a retry has Retry-After.
func (a *answer) checkRetryAfter() {
	a.t.Helper()
	due := slices.Contains([]int{423, 429, 503}, a.status)
	text, told := a.header["Retry-After"]
	if due != told {
		a.t.Errorf("%v: Retry-After = %q", a, text)
	}
	if !due || !told {
		return
	}
	if n, err := strconv.Atoi(text[0]); err != nil || n < 1 || len(text) > 1 {
		a.t.Errorf("%v: Retry-After = %q, want whole seconds from 1 on", a, text)
	}
}

// checkNoSecret: no refusal carries a token, except the one by which an entry or a
// set that stays can be resumed.
func (a *answer) checkNoSecret(got map[string]any) {
	a.t.Helper()
	rest := maps.Clone(got)
	if a.status == http.StatusServiceUnavailable {
		delete(rest, "entry")
		delete(rest, "set")
	}
	text, err := json.Marshal(rest)
	if err != nil {
		a.t.Fatal(err)
	}
	if found := shared.secrets.find(text); found != "" {
		a.t.Errorf("%v shows the secret %q", a, found)
	}
}

// refusal is what a 423 tells about those in the way.
type refusal struct {
	Holders []holder `json:"holders"`
	Waiting *int     `json:"waiting"`
}

// refused checks a 423 and returns its holders and waiters.
func (a *answer) refused(code string) refusal {
	a.t.Helper()
	detail := heldDetail
	if code == "wait_timeout" {
		detail = timeoutDetail
	}
	a.wantProblem(problem{code: code, detail: detail}, "holders", "waiting")
	var r refusal
	if err := json.Unmarshal(a.body, &r); err != nil {
		a.t.Fatalf("%v: %v", a, err)
	}
	if r.Waiting == nil {
		a.t.Fatalf("%v: waiting is no number", a)
	}
	return r
}
