package receivers_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"go/format"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// document is where the receivers are that are tested.
const document = "../../docs/how-to/receive-webhooks.md"

func languages() []string { return []string{"python", "js", "go"} }

// documented returns the one program of the document in a language.
func documented(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(document))
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("\n```" + language + "( .*)?\n")
	parts := fence.Split(string(text), -1)
	if len(parts) != 2 {
		t.Fatalf("%s has %d programs in %s", document, len(parts)-1, language)
	}
	code, _, ended := strings.Cut(parts[1], "\n```\n")
	if !ended {
		t.Fatalf("the program in %s does not end", language)
	}
	return code + "\n"
}

func TestDocumentedGoIsFormatted(t *testing.T) {
	code := documented(t, "go")
	if want, err := format.Source([]byte(code)); err != nil || code != string(want) {
		t.Errorf("gofmt would write it otherwise, %v", err)
	}
}

// receiver is a running program of the document.
type receiver struct {
	url   string
	lines chan string // what it says of each delivery
}

func start(t *testing.T, language string, secret webhook.Secret) *receiver {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := program(ctx, t, language)
	cmd.Env = append(os.Environ(), "PORT=0", "WEBHOOK_SECRET="+secret.Reveal())
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &receiver{lines: make(chan string, 100)}
	var read sync.WaitGroup
	read.Go(func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	})
	t.Cleanup(func() { stop(t, cmd, cancel, &read, &said) })
	port, ready := strings.CutPrefix(r.line(t), "listening on ")
	if !ready {
		t.Fatalf("the receiver in %s does not say where it listens", language)
	}
	r.url = "http://127.0.0.1:" + port + "/hook"
	return r
}

func stop(t *testing.T, cmd *exec.Cmd, cancel func(), read *sync.WaitGroup, said *bytes.Buffer) {
	cancel()
	read.Wait()
	_ = cmd.Wait() // it was killed
	if t.Failed() {
		t.Logf("stderr: %s", said)
	}
}

// line waits for what the receiver says next.
func (r *receiver) line(t *testing.T) string {
	t.Helper()
	select {
	case line, open := <-r.lines:
		if !open {
			t.Fatal("the receiver has ended")
		}
		return line
	case <-time.After(time.Minute):
		t.Fatal("the receiver says nothing")
		return ""
	}
}

// sender is one whose clock is off.
func sender(t *testing.T, off time.Duration) *webhook.Sender {
	t.Helper()
	p, err := webhook.NewPolicy(webhook.Settings{Allow: "127.0.0.0/8", AllowHTTP: true, Ports: "*"})
	if err != nil {
		t.Fatal(err)
	}
	return webhook.NewSender(webhook.SenderConfig{
		Policy: p, Timeout: time.Minute, Now: func() time.Time { return time.Now().Add(off) },
	})
}

var message = webhook.Message{
	ID: "1042-0",
	Payload: []byte(
		`{"id":"1042-0","type":"lock.acquired","timestamp":"2026-03-01T12:00:00.000Z",` +
			`"data":{"holder":"J\u00fcrgen Jürgen"}}`,
	),
}

// TestReceivers: each receiver takes what is signed with a secret of its own, and
// nothing else.
func TestReceivers(t *testing.T) {
	python(t) // once, before all need them
	modules(t)
	for _, language := range languages() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			own, other := webhook.NewSecret(), webhook.NewSecret()
			r := start(t, language, own)
			for name, test := range map[string]struct {
				off     time.Duration
				secrets []webhook.Secret
				good    bool
			}{
				"good":                        {0, []webhook.Secret{own}, true},
				"rotated in":                  {0, []webhook.Secret{own, other}, true},
				"rotated out":                 {0, []webhook.Secret{other, own}, true},
				"wrong secret":                {0, []webhook.Secret{other}, false},
				"two wrong secrets":           {0, []webhook.Secret{other, webhook.NewSecret()}, false},
				"four minutes ago":            {-4 * time.Minute, []webhook.Secret{own}, true},
				"six minutes ago":             {-6 * time.Minute, []webhook.Secret{own}, false},
				"six minutes into the future": {6 * time.Minute, []webhook.Secret{own}, false},
			} {
				got := sender(
					t, test.off,
				).Send(t.Context(), webhook.Target{URL: r.url, Secrets: test.secrets}, message)
				switch {
				case !test.good && (got.Outcome != webhook.Failed || got.Status != http.StatusBadRequest):
					t.Errorf("%s: %+v", name, got)
				case test.good && got.Outcome != webhook.Delivered:
					t.Errorf("%s: %+v", name, got)
				case test.good:
					if line := r.line(t); line != "1042-0 lock.acquired" {
						t.Errorf("%s: it says %q", name, line)
					}
				}
			}
			forgeries(t, r, own)
		})
	}
}

// delivery is what came over HTTP.
type delivery struct {
	header http.Header
	body   string
}

// capture makes a delivery to a receiver that keeps it.
func capture(t *testing.T, secret webhook.Secret) delivery {
	t.Helper()
	kept := make(chan delivery, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		kept <- delivery{r.Header, string(body)}
	}))
	defer server.Close()
	if got := sender(t, 0).Send(
		t.Context(), webhook.Target{URL: server.URL, Secrets: []webhook.Secret{secret}}, message,
	); got.Outcome != webhook.Delivered {
		t.Fatalf("%+v", got)
	}
	return <-kept
}

// forgeries changes a real delivery on its way.
func forgeries(t *testing.T, r *receiver, own webhook.Secret) {
	t.Helper()
	real := capture(t, own)
	signature := real.header.Get("webhook-signature")
	for name, change := range map[string]func(d *delivery){
		"body": func(d *delivery) {
			d.body = strings.Replace(d.body, "acquired", "released", 1)
		},
		"longer body":     func(d *delivery) { d.body += " " },
		"no body":         func(d *delivery) { d.body = "" },
		"body of no text": func(d *delivery) { d.body = "\xff\xfe" },
		"id":              func(d *delivery) { d.header.Set("webhook-id", "1042-1") },
		"time": func(d *delivery) {
			d.header.Set("webhook-timestamp", d.header.Get("webhook-timestamp")[:9]+"x")
		},
		"another time":    func(d *delivery) { d.header.Set("webhook-timestamp", "1614265330") },
		"no signature":    func(d *delivery) { d.header.Del("webhook-signature") },
		"empty signature": func(d *delivery) { d.header.Set("webhook-signature", "v1,") },
		"another version": func(d *delivery) {
			d.header.Set("webhook-signature", "v1a"+strings.TrimPrefix(signature, "v1"))
		},
		"without a version": func(d *delivery) {
			d.header.Set("webhook-signature", strings.TrimPrefix(signature, "v1,"))
		},
		"half a signature": func(d *delivery) {
			d.header.Set("webhook-signature", signature[:len(signature)-5])
		},
		"id with a dot, signed": func(d *delivery) { resign(t, d, "1042.0", own) },
		"long id, signed":       func(d *delivery) { resign(t, d, strings.Repeat("7", 65), own) },
	} {
		forged := delivery{maps.Clone(real.header), real.body}
		change(&forged)
		if status := post(t, r.url, forged); status != http.StatusBadRequest {
			t.Errorf("changed %s: it answers %d", name, status)
		}
	}
	if status := post(t, r.url, real); status != http.StatusNoContent {
		t.Errorf("as it was: it answers %d", status)
	}
	if line := r.line(t); line != "1042-0 lock.acquired" {
		t.Errorf("as it was: it says %q", line)
	}
}

// resign signs a delivery under an id that the server never uses: with a dot in it, what is signed
// could be cut in two ways.
func resign(t *testing.T, d *delivery, id string, secret webhook.Secret) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, id+"."+d.header.Get("webhook-timestamp")+"."+d.body)
	d.header.Set("webhook-id", id)
	d.header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func post(t *testing.T, url string, d delivery) int {
	t.Helper()
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, url, strings.NewReader(d.body),
	)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = d.header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
