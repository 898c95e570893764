package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/lock"
)

// asking are the bodies of the two ways to ask for a lock, with a callback.
func asking(url string) map[string]string {
	rest := `"async":true,"wait_seconds":600,"ttl_seconds":15,"callback_url":"` + url + `"}`
	return map[string]string{
		"/locks/orders:42": `{` + rest,
		"/locksets":        `{"locks":[{"name":"orders:42"},{"name":"stock:7"}],` + rest,
	}
}

// TestCallback: it is kept with the entry, and nothing but a retry with another one shows
// that it is there.
func TestCallback(t *testing.T) {
	t.Parallel()
	const hidden = "where-nobody-else-looks"
	shared.secrets.add(hidden) // which every refusal and the log are held against
	url := "https://example.org/" + hidden
	for path, text := range asking(url) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c := subscriber(t)
			c.post(callbackSecret).keepToken()
			happens := c.follow("/events")
			first := c.acquire("orders:42")
			a := c.post(path, body(text), key("k"))
			if a.status != http.StatusAccepted || strings.Contains(string(a.body), hidden) {
				t.Fatalf("%v", a)
			}
			queue, _, err := shared.store.Queue(
				t.Context(), lock.Ref{Tenant: c.claims.Tenant, Name: "orders:42"},
			)
			if err != nil || len(queue) != 2 {
				t.Fatalf("the queue is %+v, %v", queue, err)
			}
			if diff := cmp.Diff(&lock.Callback{URL: url, Secret: "current"}, queue[1].Callback); diff != "" {
				t.Errorf("the callback (-want +got):\n%s", diff)
			}
			c.post(callbackSecret).keepToken() // which is no other parameter
			if again := c.at(shared.other).post(
				path, body(text), key("k"),
			); again.fields()["id"] != a.fields()["id"] {
				t.Errorf("a retry is %v", again)
			}
			mismatch := problem{
				code: "idempotency_mismatch",
				detail: "the idempotency key was used before with other parameters; " +
					"repeat those, or use a new key",
			}
			c.post(path, body(strings.Replace(text, hidden, "elsewhere", 1)), key("k")).wantProblem(mismatch)
			c.post(path, body(strings.Replace(text, `,"callback_url":"`+url+`"`, "", 1)), key("k")).
				wantProblem(mismatch)
			token, _ := a.fields()["token"].(string)
			c.release(first)
			for _, look := range []*answer{
				c.get("/locks/orders:42?consistent=true"), c.get("/locks?consistent=true"),
				c.post("/locks/orders:42"),
				c.get(a.header.Get("Location")+"?wait_seconds=20", lockToken(token)),
			} {
				if strings.Contains(string(look.body), hidden) {
					t.Errorf("%v shows it", look)
				}
			}
			happens.wait(4) // up to the grant; all that it was sent is held against secrets
		})
	}
}

// TestBadCallbackURLs: where no callback may go, and when there can be none.
func TestBadCallbackURLs(t *testing.T) {
	t.Parallel()
	c := subscriber(t)
	none := problem{
		code: "no_callback_secret",
		detail: "callbacks are signed, and the tenant has no secret for that; POST " +
			"/webhooks/callback-secret/rotate makes one",
	}
	for path, text := range asking("https://example.org/") {
		c.post(path, body(text)).wantProblem(none)
	}
	c.post(callbackSecret).keepToken()
	for url, detail := range map[string]string{
		"": "is missing",
		"https://169.254.169.254/": "leads to 169.254.169.254, a metadata service of a cloud, which " +
			"this server does not send to",
	} {
		for path, text := range asking(url) {
			c.post(path, body(text)).wantProblem(invalid("callback_url", detail+suchURL))
		}
	}
	for path, text := range asking("https://example.org/") {
		connected := body(strings.Replace(text, `"async":true,`, "", 1))
		c.post(path, connected).
			wantProblem(invalid("callback_url", "is for async requests; set async, or leave it out"))
		c.post(path, body(strings.Replace(text, "true", "false", 1))).
			wantProblem(invalid("callback_url", "is for async requests; set async, or leave it out"))
		a := c.post(path, connected, header("Prefer", "respond-async"))
		if a.status != http.StatusCreated && a.status != http.StatusAccepted {
			t.Errorf("%v", a)
		}
		c.post(path, body(`{"callback_url":["https://example.org/"]}`)).
			wantProblem(invalid("callback_url", "must be a string"))
	}
}
