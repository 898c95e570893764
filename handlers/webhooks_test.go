package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// webhookBody is a webhook as clients know it.
type webhookBody struct {
	ID        string   `json:"id"`
	URL       string   `json:"url"`
	Events    []string `json:"events"`
	Locks     string   `json:"locks"`
	Paused    bool     `json:"paused"`
	CreatedAt instant  `json:"created_at"`
	CreatedBy string   `json:"created_by"`
	RotatedAt *instant `json:"rotated_at"`
	About     string   `json:"description"`
	Secret    string   `json:"secret"`
}

const receiver = `"url":"https://example.org/told"`

// subscriber returns a client of a tenant of its own that may have webhooks.
func subscriber(t testing.TB) *client {
	return newTenant(t).as(func(c *auth.Claims) { c.Scopes = append(c.Scopes, auth.WebhooksWrite) })
}

// subscribe makes a webhook.
func (c *client) subscribe(text string) webhookBody {
	c.t.Helper()
	var made webhookBody
	a := c.post("/webhooks", body(text))
	a.want(http.StatusCreated, &made)
	if at := a.header.Get("Location"); at != "/webhooks/"+made.ID ||
		a.header.Get("Cache-Control") != "no-store" {
		c.t.Errorf("%v at %q, with Cache-Control %q", a, at, a.header.Get("Cache-Control"))
	}
	if _, err := webhook.ParseSecret(made.Secret); err != nil {
		c.t.Errorf("%v: %v", a, err)
	}
	return made
}

func (c *client) webhooks() []webhookBody {
	c.t.Helper()
	var list struct {
		Webhooks []webhookBody `json:"webhooks"`
	}
	c.get("/webhooks").want(http.StatusOK, &list)
	return list.Webhooks
}

// TestWebhooksPage: the oldest first, and none twice.
func TestWebhooksPage(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	var made, seen []string
	for range 5 {
		made = append(made, c.subscribe(`{`+receiver+`}`).ID)
	}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		var page struct {
			Webhooks []webhookBody `json:"webhooks"`
			Next     string        `json:"next_cursor"`
		}
		query := "?limit=2"
		if cursor != "" {
			query += "&cursor=" + cursor
		}
		c.get("/webhooks"+query).want(http.StatusOK, &page)
		for _, w := range page.Webhooks {
			seen = append(seen, w.ID)
		}
		cursor = page.Next
	}
	if diff := cmp.Diff(made, seen); diff != "" {
		t.Errorf("(-made +seen)\n%s", diff)
	}
	c.get("/webhooks?limit=0").wantProblem(invalid("limit", "must be a whole number from 1 to 1000"))
	c.get("/webhooks?cursor=x").wantProblem(invalid("cursor", "must be the next_cursor of a page "+
		"of this list; leave it out to begin again"))
}

// TestDescriptionOfAWebhook is kept, changed, and taken away.
func TestDescriptionOfAWebhook(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	made := c.subscribe(`{` + receiver + `,"description":"tells the shop"}`)
	for text, want := range map[string]string{
		`{"paused":true}`: "tells the shop", `{"description":"x"}`: "x", `{"description":""}`: "",
	} {
		var now webhookBody
		c.post("/webhooks", body(`{`+receiver+`,"description":"tells the shop"}`)).
			want(http.StatusCreated, &made)
		if made.About != "tells the shop" {
			t.Errorf("made as %+v", made)
		}
		c.do("PATCH", "/webhooks/"+made.ID, body(text)).want(http.StatusOK, &now)
		if now.About != want {
			t.Errorf("%s: description = %q, want %q", text, now.About, want)
		}
	}
	for _, bad := range []string{strings.Repeat("ä", 201), `a\nb`} {
		a := c.post("/webhooks", body(`{`+receiver+`,"description":"`+bad+`"}`), loose)
		if a.wantStatus(http.StatusBadRequest); a.fields()["field"] != "description" {
			t.Errorf("%v", a)
		}
	}
}

// TestWebhookIsMadeChangedAndDeleted makes one, changes it, and deletes it. Its secret is shown
// when there is a new one, and not again.
func TestWebhookIsMadeChangedAndDeleted(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	made := c.subscribe(
		`{` + receiver + `,"events":["lock.acquired","events.missed"],"locks":"orders:*"}`,
	)
	path, shown := "/webhooks/"+made.ID, made
	shown.Secret = ""
	want := webhookBody{
		ID: made.ID, URL: "https://example.org/told", Events: []string{"lock.acquired"},
		Locks: "orders:*", CreatedAt: made.CreatedAt, CreatedBy: "worker-1",
	}
	if diff := cmp.Diff(want, shown); diff != "" ||
		time.Since(made.CreatedAt.Time).Abs() > time.Minute {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	look := func(want webhookBody) {
		t.Helper()
		a := c.at(shared.other).get(path)
		var got webhookBody
		a.want(http.StatusOK, &got)
		if diff := cmp.Diff(want, got) + cmp.Diff([]webhookBody{want}, c.webhooks()); diff != "" ||
			secretShape.Match(a.body) {
			t.Errorf("%v (-want +got):\n%s", a, diff)
		}
	}
	look(want)
	for text, change := range map[string]func(){
		``:                   func() {},
		`{}`:                 func() {},
		`{"paused":true}`:    func() { want.Paused = true },
		`{"events":["*"]}`:   func() { want.Events = []string{"*"} },
		`{"locks":"jobs:*"}`: func() { want.Locks = "jobs:*" },
		`{"url":"https://example.com/","locks":null}`: func() { want.URL = "https://example.com/" },
	} {
		before := want
		change()
		var got webhookBody
		c.do("PATCH", path, body(text)).want(http.StatusOK, &got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s changes %+v to (-want +got):\n%s", text, before, diff)
		}
		look(want)
	}
	var rotated webhookBody
	c.post(path+"/rotate").want(http.StatusOK, &rotated)
	if rotated.Secret == made.Secret || rotated.RotatedAt == nil {
		t.Errorf("rotated to %+v", rotated)
	}
	want.RotatedAt = rotated.RotatedAt
	look(want)
	c.delete(path).wantNoContent()
	gone := problem{code: "not_found", detail: "there is no webhook with this id; " +
		"GET /webhooks lists them"}
	for _, r := range webhookRoutes(made.ID)[2:] {
		c.do(r.method, r.path, body("{}")).wantProblem(gone)
	}
	if left := c.webhooks(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// webhookRoutes are all routes of subscriptions, those of one of them last.
func webhookRoutes(id string) []route {
	return []route{
		{"Create", "POST", "/webhooks"},
		{"List", "GET", "/webhooks"},
		{"Get", "GET", "/webhooks/" + id},
		{"Change", "PATCH", "/webhooks/" + id},
		{"Rotate", "POST", "/webhooks/" + id + "/rotate"},
		{"Delete", "DELETE", "/webhooks/" + id},
	}
}

const callbackSecret = "/webhooks/callback-secret/rotate"

// TestWebhookSelectsAllByDefault: all events of all locks, or that some are missing alone.
func TestWebhookSelectsAllByDefault(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	for text, want := range map[string]string{
		`{` + receiver + `}`:                                       "[*] *",
		`{` + receiver + `,"events":null,"locks":null}`:            "[*] *",
		`{` + receiver + `,"events":["lock.expired","*"]}`:         "[*] *",
		`{` + receiver + `,"events":["events.missed"]}`:            "[events.missed] *",
		`{` + receiver + `,"events":["lock.expired"],"locks":"a"}`: "[lock.expired] a",
	} {
		if made := c.subscribe(text); fmt.Sprint(made.Events, " ", made.Locks) != want {
			t.Errorf("%s makes %+v", text, made)
		}
	}
}

// TestBadWebhooksAreRefused: what cannot be subscribed to is refused with the field that is at
// fault, when it is made and when it is changed.
func TestBadWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	limited := c.within("orders:*")
	path := "/webhooks/" + limited.subscribe(`{`+receiver+`,"locks":"orders:*"}`).ID
	url := func(text, detail string) (string, problem) {
		return `{"url":"` + text + `"}`, invalid("url", detail)
	}
	events := func(place int) problem {
		return invalid(
			"events",
			fmt.Sprintf(`must be types of events, or "*"; number %d is none of %s`, place, everyType),
		)
	}
	beyond := invalid("locks", "must select only names that the caller is limited to")
	pattern := invalid("locks", "must be a pattern of lock names, with at most one star")
	cases := map[string]problem{
		`{` + receiver + `,"events":["lock.eaten"]}`:         events(1),
		`{` + receiver + `,"events":["lock.acquired",null]}`: events(2),
		`{` + receiver + `,"events":["lock.unknown"]}`:       events(1),
		`{` + receiver + `,"events":[]}`: invalid(
			"events", `must not be empty; "*" is all`,
		),
		`{` + receiver + `,"events":"lock.acquired"}`: invalid("events", "must be a list"),
		`{` + receiver + `,"events":[1]}`:             invalid("events[0]", "must be a string"),
		`{` + receiver + `,"locks":""}`:               pattern,
		`{` + receiver + `,"locks":"orders/*"}`:       pattern,
		`{` + receiver + `,"locks":"*a*"}`:            pattern,
		`{` + receiver + `,"locks":"order*"}`:         beyond,
		`{` + receiver + `,"locks":"jobs:1"}`:         beyond,
		`{` + receiver + `,"locks":["orders:*"]}`:     invalid("locks", "must be a string"),
		`{` + receiver + `,"secret":"whsec_x"}`:       unknown("secret"),
		`{"url":1}`:                                   invalid("url", "must be a string"),
	}
	for text, detail := range map[string]string{
		"":                    "is missing",
		"http://example.org/": "is http; this server sends to https only",
		"https://10.0.0.7/": "leads to 10.0.0.7, a private address, " +
			"which this server does not send to",
	} {
		sent, want := url(text, detail+suchURL)
		cases[sent] = want
	}
	for text, want := range cases {
		limited.post("/webhooks", body(text)).wantProblem(want)
		limited.do("PATCH", path, body(text)).wantProblem(want)
	}
	limited.post("/webhooks", body(`{`+receiver+`}`)).wantProblem(beyond) // all names by default
	limited.post("/webhooks", body(`{"locks":"orders:*"}`)).wantProblem(invalid("url", "is missing"+suchURL))
	limited.post("/webhooks", body(`{`+receiver+`,"locks":"orders:1","paused":true}`)).
		wantProblem(unknown("paused"))
	limited.do("PATCH", path, body(`{"paused":"yes"}`)).
		wantProblem(invalid("paused", "must be true or false"))
	if left := c.webhooks(); len(left) != 1 || left[0].URL != "https://example.org/told" ||
		left[0].Locks != "orders:*" {
		t.Errorf("left are %+v", left)
	}
}

// TestWebhooksOfOthers: another tenant's are not there.
func TestWebhooksOfOthers(t *testing.T) {
	t.Parallel()
	owner, other := subscriber(t), subscriber(t)
	made := owner.subscribe(`{` + receiver + `}`)
	for _, id := range []string{
		made.ID, someID, "callback-secret", "a%2Fb", "-", strings.Repeat("a", 300),
	} {
		for _, r := range webhookRoutes(id)[2:] {
			if strings.Contains(r.path, "callback-secret/rotate") ||
				strings.Contains(r.path, "%2F") && r.name == "Rotate" {
				continue
			}
			other.do(r.method, r.path, body("{}"), loose, undescribed).
				wantProblem(problem{code: "not_found", detail: "there is no webhook with this id; " +
					"GET /webhooks lists them"})
		}
	}
	if seen := other.webhooks(); len(seen) != 0 {
		t.Errorf("the other tenant sees %v", seen)
	}
	if left := owner.webhooks(); len(left) != 1 || left[0].Paused || left[0].RotatedAt != nil {
		t.Errorf("left are %+v", left)
	}
}

// TestWebhooksOfALimitedToken: a token that is limited to names reaches no webhook about others.
func TestWebhooksOfALimitedToken(t *testing.T) {
	t.Parallel()
	all := subscriber(t)
	limited := all.within("orders:*")
	wide, narrow := all.subscribe(`{`+receiver+`}`), all.subscribe(
		`{`+receiver+`,"locks":"orders:eu-*"}`,
	)
	want := problem{
		code: "forbidden",
		detail: "the webhook selects other lock names than the caller may use; " +
			"use a credential that covers them",
	}
	for _, r := range webhookRoutes(wide.ID)[2:] {
		limited.do(r.method, r.path, body("{}")).wantProblem(want)
	}
	if seen := limited.webhooks(); len(seen) != 1 || seen[0].ID != narrow.ID {
		t.Errorf("it sees %+v", seen)
	}
	limited.post(callbackSecret, body("{}")).wantProblem(problem{
		code: "forbidden",
		detail: "the callback secret is for all locks, and the caller is limited to some; " +
			"use a credential without that limit",
	})
	limited.delete("/webhooks/" + narrow.ID).wantNoContent()
}

// TestCallbackSecretIsShownOnce: each time another one, which nothing shows again.
func TestCallbackSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	seen := map[string]bool{}
	for range 3 {
		var made struct {
			Secret string `json:"secret"`
		}
		a := c.post(callbackSecret)
		a.want(http.StatusOK, &made)
		if _, err := webhook.ParseSecret(made.Secret); err != nil || seen[made.Secret] ||
			a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v: %v, again %t", a, err, seen[made.Secret])
		}
		seen[made.Secret] = true
	}
}

// TestWebhookSecretsAreNowhere: the store has nothing of them. The log is checked after all
// tests.
func TestWebhookSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	made := c.subscribe(`{` + receiver + `}`)
	c.post("/webhooks/" + made.ID + "/rotate").keepToken()
	for _, kind := range []string{subscription.Kind, subscription.CallbackKind} {
		page, err := shared.records.List(
			t.Context(), store.RecordQuery{Kind: kind, Tenant: c.claims.Tenant},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if text := string(r.Value); secretShape.MatchString(text) ||
				strings.Contains(text, strings.TrimPrefix(made.Secret, "whsec_")) {
				t.Errorf("the store has %s", text)
			}
		}
	}
}

// stubWebhooks stand in for the use cases, for what those do only on bad days.
type stubWebhooks struct{ answer func() error }

func (s *stubWebhooks) Create(
	context.Context,
	subscription.Actor,
	subscription.Change,
) (*subscription.Subscription, webhook.Secret, error) {
	return nil, webhook.Secret{}, s.answer()
}

func (s *stubWebhooks) All(*auth.Principal, string) ([]*subscription.Subscription, error) {
	return nil, s.answer()
}

func (s *stubWebhooks) List(
	context.Context,
	*auth.Principal,
) ([]*subscription.Subscription, error) {
	return nil, s.answer()
}

func (s *stubWebhooks) Get(
	context.Context,
	*auth.Principal,
	string,
) (*subscription.Subscription, error) {
	return nil, s.answer()
}

func (s *stubWebhooks) Update(
	context.Context,
	subscription.Actor,
	string,
	subscription.Change,
) (*subscription.Subscription, error) {
	return nil, s.answer()
}

func (s *stubWebhooks) Delete(context.Context, subscription.Actor, string) error {
	return s.answer()
}

func (s *stubWebhooks) Rotate(
	context.Context,
	subscription.Actor,
	string,
) (*subscription.Subscription, webhook.Secret, error) {
	return nil, webhook.Secret{}, s.answer()
}

func (s *stubWebhooks) RotateCallback(context.Context, subscription.Actor) (webhook.Secret, error) {
	return webhook.Secret{}, s.answer()
}

func (s *stubWebhooks) Callback(context.Context, string, string) (*lock.Callback, error) {
	return nil, s.answer()
}

func (s *stubWebhooks) Count(string) int { return 0 }
