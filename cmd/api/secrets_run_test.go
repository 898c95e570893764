package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth/signin/signintest"
	"github.com/fencepost/fencepost/test/poll"
)

// secretRun is a run through all that a server does, with the secrets that are used in it.
type secretRun struct {
	*server
	secrets *secrets
	answers *answers
	inbox   *inbox // what receivers got
	spans   *inbox // what a collector got
	token   string
	hook    string // where webhooks go
	called  string // the token that the entry's own receiver gets

	identity *signintest.Provider
	document map[string]any // of the operations that there are
}

// TestSecretsAreNowhere goes through every operation there is, with a level of debug, sign-in by a
// provider, webhooks that arrive and that fail, refusals of every kind, streams, traces by OTLP
// and a drain, and then searches all that the server wrote for every secret of the run. An
// answer that has to show one is known for exactly that one, in the field where it belongs.
// What panics write is searched in handlers, where one can be caused.
func TestSecretsAreNowhere(t *testing.T) { // alone: it sets the environment
	r := newSecretRun(t)
	r.locks()
	r.sets()
	r.webhooks()
	r.streams()
	r.operators()
	r.dashboard()
	r.misplaced()
	r.look()
	r.finish()
	r.search()
}

func newSecretRun(t *testing.T) *secretRun {
	t.Helper()
	r := &secretRun{secrets: newSecrets(), inbox: &inbox{}, spans: &inbox{}}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+serveTest(t, r.spans.ServeHTTP))
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
	r.hook = "http://" + serveTest(t, func(w http.ResponseWriter, req *http.Request) {
		if r.inbox.ServeHTTP(w, req); req.URL.Path == "/fails" {
			http.Error(w, "no", http.StatusInternalServerError)
		}
	})
	r.identity = signintest.Start(
		t, map[string]any{"sub": "1", "email": "ann@example.com", "groups": []string{"operators"}},
	)
	const tokenKey = "k8Jd72kfLq0s9dkWmNvb31xZ-token-key"
	args := append(oidcArgs(
		t, closedPort(t), r.identity.URL, operatorsGroup,
	), "--token-key-file", file(t, tokenKey), "--log-level", "debug",
		"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*")
	config := command(t, nil, append([]string{"--print-config"}, args...)...)
	key := strings.Repeat("k", 32)
	r.token = r.bearer(t, file(t, key), "locks:read locks:write webhooks:write admin")
	r.server = start(t, args...)
	r.answers = &answers{RoundTripper: r.client.Transport, host: strings.TrimPrefix(r.url, "http://")}
	r.client.Transport = r.answers
	r.secrets.add("the token key", tokenKey)
	r.secrets.addWords("the key of bearer tokens", key)
	r.secrets.addWords("the client's secret", signintest.ClientSecret)
	if found := r.secrets.find(config.out + config.errOut); config.code != 0 || len(found) > 0 {
		t.Errorf("--print-config (%d) shows %v", config.code, found)
	}
	return r
}

// bearer makes a token, which is a secret from then on.
func (r *secretRun) bearer(t *testing.T, key, scopes string) string {
	t.Helper()
	made := command(
		t, nil, "token", "--jwt-secret-file", key, "--tenant", "acme", "--subject", "boss", "--scope",
		scopes,
	)
	token := strings.TrimSpace(made.out)
	r.secrets.add("a bearer token", token)
	return token
}

// do makes a request that has to succeed.
func (r *secretRun) do(method, path, body string, headers ...string) reply {
	r.t.Helper()
	got := r.call(r.token, method, path, body, headers...)
	if got.status >= http.StatusBadRequest {
		r.t.Fatalf("%s %s: %d %v", method, path, got.status, got.body)
	}
	return got
}

// shown takes the secret that the last answer has in a field out of its record, once, and
// keeps it.
func (r *secretRun) shown(got reply, field string) string {
	r.t.Helper()
	text := got.text(field)
	if len(text) < gram {
		r.t.Fatalf("there is no %s in %v", field, got.body)
	}
	r.secrets.add(field, text)
	all := r.answers.list()
	all[len(all)-1].forgive(fmt.Sprintf("%q:%q", field, text))
	return text
}

func (a *answer) forgive(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := strings.Replace(a.text.String(), text, "", 1)
	a.text.Reset()
	a.text.WriteString(rest)
}

// taken is an entry with its token, which its answer may show.
func (r *secretRun) taken(
	method, path, body string, headers ...string,
) (id, token string, fence float64) {
	r.t.Helper()
	got := r.do(method, path, body, headers...)
	return got.text("id"), r.shown(got, "token"), got.number("fence")
}

func (r *secretRun) locks() {
	id, token, fence := r.taken(
		"POST", "/locks/orders:1", `{"ttl_seconds":600,"metadata":{"job":"7"}}`, "Idempotency-Key",
		"of-mine",
	)
	r.taken(
		"POST", "/locks/orders:1", `{"ttl_seconds":600,"metadata":{"job":"7"}}`, "Idempotency-Key",
		"of-mine",
	)
	r.call(r.token, "POST", "/locks/orders:1", "")
	r.call(r.token, "POST", "/locks/orders:1", `{"wait_seconds":0.05}`)
	waits, waiting, _ := r.taken(
		"POST", "/locks/orders:1",
		`{"wait_seconds":60,"async":true,"request_release":{"within_seconds":30}}`,
	)
	r.taken("GET", "/locks/orders:1/entries/"+waits, "", "Lock-Token", waiting)
	r.taken("PUT", "/locks/orders:1/renew", "", "Lock-Token", token)
	r.taken("GET", "/locks/orders:1/entries/"+id, "", "Lock-Token", token)
	r.do(
		"POST", "/locks/orders:1/stale-writes",
		fmt.Sprintf(`{"fence_presented":1,"fence_known":%d,"resource":"db"}`, int64(fence)),
	)
	r.do("DELETE", "/locks/orders:1", "", "Lock-Token", token)
	for _, lost := range []string{token, token[:len(token)-1] + "x", "fp1_" + token} {
		r.call(r.token, "PUT", "/locks/orders:1/renew", "", "Lock-Token", lost)
		r.call(r.token, "DELETE", "/locks/orders:2", "", "Lock-Token", lost)
	}
	r.do("GET", "/locks", "")
	r.do("GET", "/locks/orders:1", "")
}

func (r *secretRun) sets() {
	id, token, _ := r.taken(
		"POST", "/locksets", `{"ttl_seconds":600,"locks":[{"name":"a"},{"name":"b"}]}`,
	)
	r.taken(
		"POST", "/locksets",
		`{"locks":[{"name":"a"},{"name":"c"}],"wait_seconds":60,"async":true,"request_release":{}}`,
	)
	r.taken("PUT", "/locksets/"+id+"/renew", "", "Lock-Token", token)
	r.taken("GET", "/locksets/"+id, "", "Lock-Token", token)
	r.do("DELETE", "/locksets/"+id, "", "Lock-Token", token)
	r.call(r.token, "GET", "/locksets/"+id, "", "Lock-Token", token)
}

func (r *secretRun) webhooks() {
	made := r.do("POST", "/webhooks", fmt.Sprintf(`{"url":%q}`, r.hook+"/all"))
	r.shown(made, "secret")
	r.shown(r.do("POST", "/webhooks", fmt.Sprintf(`{"url":%q}`, r.hook+"/fails")), "secret")
	for range 2 {
		r.shown(r.do("POST", "/webhooks/callback-secret/rotate", ""), "secret")
	}
	where := "/webhooks/" + made.text("id")
	r.shown(r.do("POST", where+"/rotate", ""), "secret")
	_, token, _ := r.taken("POST", "/locks/called", fmt.Sprintf(
		`{"async":true,"wait_seconds":60,"ttl_seconds":60,"callback_url":%q}`, r.hook+"/mine",
	))
	r.called = token
	poll.Until(r.t, "the entry's own receiver is told", func() bool {
		got, ok := r.inbox.first("/mine", "lock.acquired")
		return ok && strings.Contains(string(got.body), token)
	})
	var delivery string
	poll.Until(r.t, "a delivery is listed", func() bool {
		list, _ := r.do("GET", where+"/deliveries", "").body["deliveries"].([]any)
		if len(list) > 0 {
			first, _ := list[0].(map[string]any)
			delivery, _ = first["id"].(string)
		}
		return delivery != ""
	})
	r.do("POST", where+"/deliveries/"+delivery+"/redeliver", "")
	r.do("POST", where+"/test", "")
	for _, path := range []string{"/webhooks", where} {
		r.do("GET", path, "")
	}
	poll.Until(
		r.t, "one fails", func() bool { _, ok := r.inbox.first("/fails", "lock.acquired"); return ok },
	)
	of := "/admin/webhooks/acme/" + made.text("id")
	r.do("PATCH", of, `{"paused":true,"reason":"its node is lost"}`)
	r.do("PATCH", of, `{"paused":false,"reason":"its node is there"}`)
	r.do("GET", of, "")
	r.do("GET", of+"/deliveries", "")
	r.do("POST", of+"/deliveries/"+delivery+"/redeliver", "")
	// it would not get that delivery's event any more
	r.do("PATCH", where, `{"locks":"orders:*"}`)
	r.do("DELETE", where, "")
}

// streams opens each stream until it told something.
func (r *secretRun) streams() {
	for i, path := range []string{"/events", "/admin/events"} {
		ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
		req, err := http.NewRequestWithContext(ctx, "GET", r.url+path, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+r.token)
		resp, err := r.client.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			r.t.Fatalf("%s: %v, %v", path, resp, err)
		}
		r.taken("POST", fmt.Sprint("/locks/told:", i), "")
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data:") {
		}
		if !strings.HasPrefix(lines.Text(), "data:") {
			r.t.Errorf("%s tells nothing: %v", path, lines.Err())
		}
		cancel()
		_ = resp.Body.Close()
	}
}

func (r *secretRun) operators() {
	id, _, fence := r.taken("POST", "/locks/bad", `{"ttl_seconds":600,"holder":"w1"}`)
	other, _, number := r.taken("POST", "/locks/worse", `{"ttl_seconds":600,"holder":"w2"}`)
	set := r.do("POST", "/locksets", `{"ttl_seconds":600,"locks":[{"name":"x"},{"name":"y"}]}`)
	r.shown(set, "token")
	claims, _ := set.body["locks"].([]any)
	claim, _ := claims[0].(map[string]any)
	why := `"reason":"its node is lost"`
	r.do(
		"POST", "/admin/locks/acme/bad/entries/"+id+"/revoke",
		fmt.Sprintf(`{%s,"fence":%d}`, why, int64(fence)),
	)
	r.do("POST", "/admin/holders/revoke", fmt.Sprintf(
		`{%s,"tenant":"acme","holder":"w2","entries":[{"id":%q,"fence":%d}]}`, why, other, int64(number),
	))
	r.do(
		"POST", "/admin/locksets/acme/"+set.text("id")+"/revoke",
		fmt.Sprintf(`{%s,"fence":%.0f}`, why, claim["fence"]),
	)
	until := time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")
	closed := r.do(
		"POST", "/admin/closures",
		fmt.Sprintf(`{%s,"tenant":"acme","locks":"none:*","until":%q}`, why, until),
	)
	r.do("DELETE", "/admin/closures/"+closed.text("id"), "")
	quota := "/admin/tenants/acme/quota"
	r.do("PUT", quota, fmt.Sprintf(`{%s,"held_locks":1000}`, why))
	r.do("GET", quota, "")
	r.do("DELETE", quota, "")
	for _, path := range []string{
		"audit", "blocking", "closures", "deadlocks", "heatmap", "holders?tenant=acme&holder=boss",
		"lock-order", "locks", "locks/acme/orders:1",
		"locks/acme/orders:1/history", "overview", "series", "tenants", "webhooks",
	} {
		r.do("GET", "/admin/"+path, "")
	}
	// it is no JSON as a whole
	if lines, _ := r.try(
		r.token, "GET", "/admin/audit", "", "Accept", "application/x-ndjson",
	); lines.status != http.StatusOK {
		r.t.Errorf("the audit as lines: %d", lines.status)
	}
}

// dashboard signs in by a token, and by the provider, and out again.
func (r *secretRun) dashboard() {
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.client.Jar = jar
	r.call("", "POST", "/dashboard/session", `{"bearer_token":"`+r.token+`x"}`)
	r.call("", "POST", "/dashboard/session", `{"code":"`+r.token+`"}`)
	r.do("POST", "/dashboard/session", `{"bearer_token":"`+r.token+`"}`)
	r.cookies()
	r.call("", "DELETE", "/dashboard/session", "")
	r.call("", "GET", "/dashboard/sign-in/oidc/callback?code="+r.token+"&state=x", "")
	if got := r.call("", "GET", "/dashboard/sign-in/oidc", ""); got.status != http.StatusOK {
		r.t.Errorf("it leads to %+v", got)
	}
	r.cookies()
	for _, path := range []string{
		"/dashboard/session", "/dashboard/sign-in", "/dashboard", "/dashboard/", "/admin/overview",
	} {
		r.call("", "GET", path, "")
	}
	r.call("", "DELETE", "/dashboard/session", "")
	r.client.Jar = nil
}

// location leads to the provider, with what is for it alone; setCookie is for the browser.
var (
	location  = regexp.MustCompile(`(?m)^Location: http://[^ ]*/auth\?\S+`)
	setCookie = regexp.MustCompile(`(?m)^Set-Cookie: \S+?=([^;]*);`)
)

// cookies keeps the values of cookies, which only the answers that set them may have.
func (r *secretRun) cookies() {
	for _, a := range r.answers.list() {
		for _, found := range setCookie.FindAllStringSubmatch(a.String(), -1) {
			if r.secrets.add("a cookie", found[1]); strings.HasPrefix(a.path, "/dashboard/s") {
				a.forgive(found[0])
			}
		}
		if a.path == "/dashboard/sign-in/oidc" {
			a.forgive(location.FindString(a.String()))
		}
	}
}

// misplaced sends secrets where none belong.
func (r *secretRun) misplaced() {
	_, token, _ := r.taken("POST", "/locks/mine", `{"ttl_seconds":600}`)
	for _, text := range []string{r.token, token} {
		r.call(r.token, "GET", "/locks?cursor="+text, "")
		r.call(r.token, "GET", "/locks?token="+text, "")
		r.call(r.token, "GET", "/nowhere/"+text, "")
		r.call(r.token, "POST", "/locks/"+text+"%2f", "")
		r.call(r.token, "POST", "/locks/orders:3", `{"token":"`+text+`"}`)
		r.call(r.token, "POST", "/locks/orders:3", `{"mode":"`+text+`"}`)
		r.call(r.token, "POST", "/locks/orders:3", `{"`+text)
		r.call(r.token, "POST", "/webhooks", `{"url":"`+r.hook+`/?`+text+`","events":["`+text+`"]}`)
		r.call(r.token, "GET", "/admin/audit?cursor="+text, "")
		r.call(text, "GET", "/locks?x=1", "")
		r.call(text+"x", "GET", "/admin/overview", "")
		r.call("", "GET", "/locks", "", "Authorization", "Basic "+text)
		r.call("", "GET", "/locks", "", "Authorization", text, "Traceparent", text, "Last-Event-Id", text)
	}
}

// look asks for what needs no token.
func (r *secretRun) look() {
	for _, path := range []string{
		"/healthz", "/problems/lock_lost", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/",
		"/docs/swagger-ui.css",
	} {
		if got := r.do("GET", path, ""); path == "/openapi.json" {
			r.document = got.body
		}
	}
	assets := regexp.MustCompile(`assets/[\w.-]+`)
	for _, a := range r.answers.list() {
		if a.path == "/dashboard/" {
			for _, name := range assets.FindAllString(a.String(), -1) {
				r.call("", "GET", "/dashboard/"+name, "")
			}
		}
	}
}

// finish ends the server while a request waits.
func (r *secretRun) finish() {
	told := make(chan reply, 1)
	go func() {
		got, _ := r.try(r.token, "POST", "/locks/mine", `{"wait_seconds":60}`)
		told <- got
	}()
	poll.Until(r.t, "one waits", func() bool {
		waiters, _ := r.do("GET", "/locks/mine", "").body["waiters"].([]any)
		return len(waiters) > 0
	})
	if code := r.end(); code != 0 {
		r.t.Errorf("it ended with %d", code)
	}
	got := <-told
	entry, _ := got.body["entry"].(map[string]any)
	token, _ := entry["token"].(string)
	r.secrets.add("a drained token", token)
	for _, a := range r.answers.list() {
		if a.method == "POST" && a.path == "/locks/mine" && a.status == http.StatusServiceUnavailable {
			a.forgive(fmt.Sprintf(`"token":%q`, token))
		}
	}
}

// search looks for every secret in all that was written.
func (r *secretRun) search() {
	r.t.Helper()
	for _, text := range r.identity.Secrets() {
		r.secrets.add("of the sign-in", text)
	}
	r.answers.covered(r.t, r.document)
	r.clean("stdout", r.out.String())
	for line := range strings.Lines(r.log.String()) {
		r.clean("the log", line)
	}
	for _, a := range r.answers.list() {
		r.clean(fmt.Sprint(a.status, " to ", a.method, " ", template(r.document, a.path)), a.String())
	}
	for _, sent := range r.spans.list() {
		r.clean("OTLP "+sent.path, fmt.Sprint(sent.header, string(sent.body)))
	}
	for _, sent := range r.inbox.list() {
		text := string(sent.body)
		if sent.path == "/mine" {
			text = strings.Replace(text, fmt.Sprintf(`"token":%q`, r.called), "", 1)
		}
		r.clean("a webhook to "+sent.path, text)
	}
	r.t.Logf("searched %d answers, %d bytes of log, %d exports and %d deliveries for %d pieces of secrets",
		len(r.answers.list()), len(r.log.String()), len(r.spans.list()), len(r.inbox.list()), len(
			r.secrets.grams,
		))
	if len(r.spans.list()) < 2 || len(r.inbox.list()) < 10 ||
		strings.Count(r.log.String(), `"msg":"request"`) < 100 {
		r.t.Error("there is too little of it: what was searched?")
	}
}

func (r *secretRun) clean(what, text string) {
	r.t.Helper()
	if found := r.secrets.find(text); len(found) > 0 {
		r.t.Errorf("%s shows %v: %.600s", what, found, text)
	}
}
