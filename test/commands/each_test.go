package commands_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/poll"
)

// step is a command, its exit code, and what it prints on standard output, or on standard error if
// it fails.
type step struct {
	args   string // with spaces in between
	code   int
	prints string
}

// TestEachCommand: what each command does, in a table, as JSON and as names.
func TestEachCommand(t *testing.T) {
	t.Parallel()
	r, token := serverOn(t, "embedded", "--webhook-allow-http",
		"--webhook-allow", "127.0.0.0/8", "--webhook-ports", "*")
	u := userOf(t, r.URL(), token)
	reader, err := r.Token("acme", "locks:read", "reader")
	if err != nil {
		t.Fatal(err)
	}
	u.exports(u.command("acquire", "--holder", "me", "--ttl", "10m", "each:a").expect(0))
	u.command("run", "--holder", "next", "--wait", "10m", "each:a", "--", "true").start()
	poll.Until(t, "a waiter", func() bool {
		return u.command("queue", "each:a", "-o", "name").expect(0) == "next\n"
	})
	u.steps(
		step{"status each:a", 0, "each:a is held, 1 waiting"},
		step{"queue each:a", 0, "next"},
		step{"list each:", 0, "each:a  contended  me"},
		step{"list each: -o name", 0, "each:a\n"},
		step{"list --state held nothing:", 0, "LOCK"},
		step{"why each:a", 0, "each:a is held by me for"},
		step{"why each:a", 0, "1 entry waits. The first is next"},
		step{"why each:a -o json", 0, `"why": [`},
		step{"wait each:a --timeout 1ms", 75, "each:a is still in use"},
		step{"renew", 0, "each:a expires at"},
		step{"release", 0, ""},
		step{"release", 0, ""}, // as a retry does
		step{"renew", 76, "each:a is lost: released"},
		step{"wait each:a", 0, ""},
		step{"why each:a", 0, "each:a is free"},
		step{"why each:a", 0, "next had it last for"},
		step{"why each:a --token " + reader, 0, "needs the scope tenant-admin"},
		step{"why each:never", 0, "each:never is free: no entry holds it or waits for it.\n"},
		step{"acquire --semaphore 5 --permits 3 each:c", 0, "export FENCEPOST_LOCK_TOKEN="},
		step{"status each:c", 0, "each:c is held, 3 of its permits\n"},
		step{"status each:c", 0, "semaphore: 3 of 5"},
		step{"acquire each:b", 0, "export FENCEPOST_LOCK_TOKEN="},
		step{"revoke each:b --reason testing-each", 1, "not confirmed: use --yes"},
		step{"revoke each:b --reason short --yes", 64, "reason must have 10"},
		step{"revoke each:b --reason testing-each --yes", 0, "revoked each:b of"},
		step{"why each:b", 0, "(revoked, fence "},
		step{"audit", 0, "testing-each"},
		step{"audit --since 1h -o json", 0, `"action": "entry.revoke"`},
		step{"revoke each:free --reason testing-each --yes", 1, "each:free is not held"},
		step{"close each:* --reason testing-each", 0, "each:* is closed until"},
		step{"acquire each:b", 75, "testing-each"},
		step{"open", 0, "testing-each"},
		step{"open each:*", 0, ""},
		step{"open each:*", 1, "there is no closure each:*"},
		step{"webhooks list", 0, "ID  URL"},
		step{"token", 0, "tenant   acme"},
		step{"doctor", 0, "the server accepts the token"},
		step{"doctor --for 9d", 64, "invalid"},
		step{"doctor --for 1h", 0, "the server accepts the token"},
		step{"doctor --for 900h", 1, "1 of 7 checks failed"},
		step{"doctor --token bad", 1, "1 of 6 checks failed"},
		step{"list --token bad", 77, "The caller is not known"},
		step{"list --url http://127.0.0.1:1", 75, "no server answered in time"},
		step{"list --url nonsense", 64, "URL 1 is no base URL"},
		step{"list -o yaml", 64, "table, json or name"},
		step{"status", 64, "use: fencepost status NAME"},
		step{"status no/name", 64, "a lock name is 1 to 200"},
		step{"listt", 64, "Did you mean this? list"},
		step{"webhooks nonsense", 64, "use: fencepost webhooks"},
		step{"completion nonsense", 64, "use: fencepost completion"},
		step{"run --token-file /none x -- true", 64, "no token: open /none"},
		step{"version", 0, "go1."},
		step{"completion bash", 0, "complete"},
	)
	for _, command := range []string{
		"status x", "queue x", "list", "why x", "open", "webhooks list", "token", "doctor", "contexts",
		"version",
	} {
		var value any
		text := u.command(append(strings.Fields(command), "-o", "json")...).expect(0)
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Errorf("%s: %v: %s", command, err, text)
		}
	}
}

// steps runs commands one after the other.
func (u *user) steps(all ...step) {
	u.t.Helper()
	for _, s := range all {
		p := u.command(strings.Fields(s.args)...)
		said := p.expect(s.code)
		if s.code != 0 {
			said = p.stderr.String()
		}
		if !strings.Contains(said, s.prints) {
			u.t.Errorf("%s prints %q, without %q", s.args, said, s.prints)
		}
	}
}

// exports adds the lines that acquire prints to the environment.
func (u *user) exports(text string) {
	for line := range strings.Lines(text) {
		u.env = append(u.env, strings.TrimSpace(strings.TrimPrefix(line, "export ")))
	}
}

// TestWebhookCommands: a webhook is made, tested, looked at and deleted.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case got <- r.Header.Get("webhook-id"):
		default:
		}
	}))
	t.Cleanup(receiver.Close)
	r, token := serverOn(t, "embedded", "--webhook-allow-http",
		"--webhook-allow", "127.0.0.0/8", "--webhook-ports", "*")
	u := userOf(t, r.URL(), token)
	id := strings.TrimSpace(u.command("webhooks", "create", receiver.URL, "-o", "name").expect(0))
	u.steps(
		step{"webhooks get " + id, 0, "active"}, step{"webhooks list -o name", 0, id},
		step{"webhooks test " + id, 0, "sent as the delivery"},
	)
	u.command("run", "hooked", "--", "true").expect(0)
	<-got
	var delivery string
	poll.Until(t, "the delivery of an event", func() bool {
		for line := range strings.Lines(u.command("webhooks", "deliveries", id).expect(0)) {
			if strings.Contains(line, "lock.acquired") && strings.Contains(line, "delivered") {
				delivery = strings.Fields(line)[0]
			}
		}
		return delivery != ""
	})
	u.steps(
		step{"webhooks redeliver " + id + " " + delivery, 0, ""}, step{"webhooks delete " + id, 0, ""},
		step{"webhooks get " + id, 1, "there is no webhook"},
	)
}

// TestWatch: a pipe gets a line for each event of the pattern.
func TestWatch(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	out, err := os.Create(u.path("events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	watch := u.command("watch", "watched:*")
	watch.Stdout = out
	watch.start()
	poll.Until(t, "two events of one lock", func() bool {
		u.command("run", "other", "--", "true").expect(0)
		u.command("run", "watched:it", "--", "true").expect(0)
		words := u.lines("events") // the first may begin between the two
		return slices.Contains(words, "lock.acquired") && slices.Contains(words, "lock.released")
	})
	words := u.lines("events")
	if !slices.Contains(words, "watched:it") || slices.Contains(words, "other") {
		t.Errorf("it prints %q", words)
	}
}

// TestLogin: a token from standard input, or a sign-in at a provider with a device code, makes a
// context that later commands use, in a file that only its owner can read.
func TestLogin(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	server, token := u.env[2], strings.TrimPrefix(u.env[3], "FENCEPOST_TOKEN=")
	u.env = u.env[:2] // without a server
	u.steps(step{"list", 64, "no server is set"}, step{"contexts", 0, "CURRENT"})

	url := strings.TrimPrefix(server, "FENCEPOST_URL=")
	login := u.command("login", "pasted", "--url", url)
	login.Stdin = strings.NewReader(token + "\n")
	login.expect(0)
	bad := u.command("login", "bad", "--url", url)
	bad.Stdin = strings.NewReader("bad\n")
	bad.expect(77)
	if info, err := os.Stat(u.path(".config/fencepost/config")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	provider := deviceProvider(t, token)
	text := u.command("login", "signed-in", "--url", url, "--oidc-issuer", provider,
		"--oidc-client-id", "cli")
	text.expect(0)
	if !strings.Contains(text.stderr.String(), "enter the code ABCD-EFGH") {
		t.Errorf("it says %q", &text.stderr)
	}
	u.steps(
		step{"contexts -o name", 0, "pasted\nsigned-in\n"}, step{"list", 0, "LOCK"},
		step{"contexts delete signed-in", 0, ""}, step{"list", 64, "no server is set"},
		step{"list --context pasted", 0, "LOCK"}, step{"contexts use pasted", 0, ""},
		step{"doctor", 0, "pasted"},
	)
}

// deviceProvider is an OpenID Connect provider that grants a token by device code (RFC 8628) to
// the second request.
func deviceProvider(t *testing.T, token string) string {
	asked := 0
	routes := http.NewServeMux()
	provider := httptest.NewServer(routes)
	t.Cleanup(provider.Close)
	answer := func(path string, with func() (int, map[string]any)) {
		routes.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			status, body := with()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if err := json.NewEncoder(w).Encode(body); err != nil {
				panic(fmt.Errorf("answer %s: %w", path, err))
			}
		})
	}
	answer("/.well-known/openid-configuration", func() (int, map[string]any) {
		return http.StatusOK, map[string]any{
			"issuer": provider.URL, "token_endpoint": provider.URL + "/token",
			"device_authorization_endpoint": provider.URL + "/device",
		}
	})
	answer("/device", func() (int, map[string]any) {
		return http.StatusOK, map[string]any{
			"device_code": "secret", "user_code": "ABCD-EFGH", "verification_uri": provider.URL + "/enter",
			"expires_in": 600, "interval": 1,
		}
	})
	answer("/token", func() (int, map[string]any) {
		if asked++; asked == 1 {
			return http.StatusBadRequest, map[string]any{"error": "authorization_pending"}
		}
		return http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer"}
	})
	return provider.URL
}

// TestPageNamesEachCommand: docs/reference/cli.md and the manual name all commands.
func TestPageNamesEachCommand(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	page, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	manual := strings.ReplaceAll(u.command("man").expect(0), `\-`, "-")
	commands := 0
	for line := range strings.Lines(u.command("--help").expect(0)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(line, "  ") || strings.HasPrefix(name, "-") ||
			slices.Contains([]string{"fencepost", "help"}, name) {
			continue
		}
		commands++
		if !strings.Contains(string(page), "`"+name) && !strings.Contains(string(page), " "+name+" ") {
			t.Errorf("docs/reference/cli.md does not name %s", name)
		}
		if !strings.Contains(manual, name) {
			t.Errorf("the manual does not name %s", name)
		}
	}
	if commands < 20 {
		t.Errorf("the help names %d commands", commands)
	}
}
