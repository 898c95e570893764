package main

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/webhook"
)

// received is a delivery as it came.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// inbox is a receiver that takes everything.
type inbox struct {
	mu  sync.Mutex
	all []received
}

func (i *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, received{r.URL.Path, r.Header.Clone(), body})
}

func (i *inbox) list() []received {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.all)
}

// first returns the first delivery of a type at a path.
func (i *inbox) first(path, kind string) (found received, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.all {
		if r.path == path && strings.Contains(string(r.body), `"type":"`+kind+`"`) {
			return r, true
		}
	}
	return found, false
}

// signedBy reports whether one of the signatures is that of a secret.
func (r received) signedBy(t *testing.T, secret string) bool {
	t.Helper()
	key, err := webhook.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseInt(r.header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want, err := webhook.Sign(r.header.Get("webhook-id"), time.Unix(seconds, 0), r.body, key)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(r.header.Get("webhook-signature"), want.Get("webhook-signature"))
}

// TestWebhooksAreSent has a server tell a subscriber of a grant, and an entry's own receiver
// of its, each signed with the secret that was shown for it.
func TestWebhooksAreSent(t *testing.T) {
	to := &inbox{}
	address := serveTest(t, to.ServeHTTP)
	key := file(t, secret)
	s := start(
		t, "--data-dir", t.TempDir(), "--jwt-secret-file", key, "--webhook-allow", "127.0.0.0/8",
		"--webhook-allow-http", "--webhook-ports", "*",
	)
	printed := command(
		t, nil, "token", "--jwt-secret-file", key, "--tenant", "acme", "--scope",
		"locks:read locks:write webhooks:write",
	)
	token := strings.TrimSpace(printed.out)
	made := s.call(token, "POST", "/webhooks", `{"url":"http://`+address+`/all","locks":"orders:*"}`)
	callback := s.call(token, "POST", "/webhooks/callback-secret/rotate", "")
	if made.status != http.StatusCreated || callback.status != http.StatusOK {
		t.Fatalf("answered %v and %v", made, callback)
	}
	s.acquired(token, "other", "")
	granted := s.call(
		token, "POST", "/locks/orders:42",
		`{"async":true,"wait_seconds":60,"ttl_seconds":60,"callback_url":"http://`+address+`/mine"}`,
	)
	for path, secret := range map[string]string{
		"/all": made.text("secret"), "/mine": callback.text("secret"),
	} {
		var got received
		poll.Until(t, "a grant is told at "+path, func() (ok bool) {
			got, ok = to.first(path, "lock.acquired")
			return ok
		})
		if !got.signedBy(t, secret) ||
			strings.Contains(string(got.body), granted.text("token")) != (path == "/mine") {
			t.Errorf("at %s there is %s with %v", path, got.body, got.header)
		}
		var event struct{ Data struct{ Lock string } }
		if err := json.Unmarshal(got.body, &event); err != nil || event.Data.Lock != "orders:42" {
			t.Errorf("at %s: %s, %v", path, got.body, err)
		}
	}
	where := "/webhooks/" + made.text("id")
	if again := s.call(token, "POST", where+"/test", ""); again.status != http.StatusAccepted {
		t.Errorf("a test is answered %v", again)
	}
	poll.Until(
		t, "a test is sent", func() bool { _, ok := to.first("/all", "webhook.test"); return ok },
	)
	poll.Until(t, "deliveries are listed", func() bool {
		list, _ := s.call(token, "GET", where+"/deliveries", "").body["deliveries"].([]any)
		return len(list) >= 2
	})
	for _, text := range []string{made.text("secret"), callback.text("secret")} {
		if strings.Contains(s.log.String(), strings.TrimPrefix(text, "whsec_")) {
			t.Errorf("the log shows a secret:\n%s", s.log)
		}
	}
	if code := s.end(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// TestWebhooksArePaced: of a tenant no more are sent in a second than its quota says; all are sent
// in the end, and the quota shows what is used.
func TestWebhooksArePaced(t *testing.T) {
	const perSecond, grants = 4, 24
	to := &inbox{}
	address := serveTest(t, to.ServeHTTP)
	key := file(t, secret)
	s := start(t, "--data-dir", t.TempDir(), "--jwt-secret-file", key,
		"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*",
		"--default-quotas", "webhook_attempts_per_second="+strconv.Itoa(perSecond))
	printed := command(
		t, nil, "token", "--jwt-secret-file", key, "--tenant", "acme", "--scope",
		"locks:read locks:write webhooks:write",
	)
	admin := command(t, nil, "token", "--jwt-secret-file", key, "--tenant", "ops", "--scope", "admin")
	token := strings.TrimSpace(printed.out)
	if made := s.call(
		token, "POST", "/webhooks", `{"url":"http://`+address+`/all","events":["lock.acquired"]}`,
	); made.status != http.StatusCreated {
		t.Fatalf("answered %v", made)
	}
	began := time.Now()
	for i := range grants {
		s.acquired(token, "paced:"+strconv.Itoa(i), "")
	}
	shown, measured := false, false
	poll.Until(t, "some are used up", func() bool {
		used, _ := s.call(
			strings.TrimSpace(admin.out), "GET", "/admin/tenants/acme/quota", "",
		).body["used"].(map[string]any)
		n, _ := used["webhook_attempts_per_second"].(float64)
		figure := s.figure(`fencepost_quota_usage{quota="webhook_attempts_per_second"}`)
		shown, measured = shown || n > 0, measured || figure != "" && figure != "0"
		return shown && measured
	})
	poll.Until(t, "all grants are told", func() bool { return len(to.list()) >= grants })
	if took, least := time.Since(began), (grants-perSecond)*time.Second/perSecond; took < least {
		t.Errorf("all are told within %s, which takes %s at least", took, least)
	}
	if code := s.end(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}
