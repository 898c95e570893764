package receivers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/openapi"
	"github.com/fencepost/fencepost/openapi/contracttest"
	"github.com/fencepost/fencepost/test/rig"
)

// delivered is a delivery that came: to a path, of a type of event.
type delivered struct {
	what    string
	request *http.Request
}

// collect starts a receiver that takes everything.
func collect(t *testing.T) (url string, all <-chan delivered) {
	t.Helper()
	came := make(chan delivered, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return // it is sent again
		}
		var event struct{ Type string }
		_ = json.Unmarshal(text, &event) // the check says if it is no JSON
		kept := r.Clone(context.Background())
		kept.Body = io.NopCloser(bytes.NewReader(text))
		came <- delivered{r.URL.Path + " " + event.Type, kept}
	}))
	t.Cleanup(server.Close)
	return server.URL, came
}

// caller asks a server for things.
type caller struct {
	t           *testing.T
	url, bearer string
}

// do makes a request, wants the status, and returns the answer.
func (c *caller) do(
	status int,
	method, path, token, body string,
) (out struct{ ID, Token, Secret string }) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Lock-Token", token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		c.t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, text, err)
	}
	_ = json.Unmarshal(text, &out) // of no body nothing is wanted
	return out
}

// server starts one that may send to this machine.
func server(t *testing.T) *caller {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	binary, err := rig.BuildAPI(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rig.StartReplica(ctx, rig.ReplicaConfig{
		Binary: binary, DataDir: filepath.Join(dir, "data"),
		Secret: "receivers: thirty-two bytes or more, and never used elsewhere",
		Args: []string{
			"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	bearer, err := r.Token("acme", "locks:read locks:write webhooks:write admin", "worker")
	if err != nil {
		t.Fatal(err)
	}
	return &caller{t, r.URL(), bearer}
}

// described holds all that comes against the description, and keeps what came.
type described struct {
	t       *testing.T
	all     <-chan delivered
	checker *contracttest.Checker
	came    map[string]bool
}

// want waits until these have come since the last time.
func (d *described) want(wanted ...string) {
	d.t.Helper()
	limit := time.After(2 * time.Minute)
	for _, what := range wanted {
		for !d.came[what] {
			if d.t.Failed() { // what is wanted may be what came as something else
				d.t.FailNow()
			}
			select {
			case one := <-d.all:
				d.check(one)
			case <-limit:
				d.t.Fatalf("%s did not come, but %v", what, d.came)
			}
		}
		delete(d.came, what)
	}
}

func (d *described) check(one delivered) {
	d.t.Helper()
	path, _, _ := strings.Cut(one.what, " ")
	operation, name := map[string]string{
		"/event": "/webhooks", "/locks/a": "/locks/{name}", "/locksets": "/locksets",
	}[path], "grant"
	if path == "/event" {
		name = "event"
	}
	if err := d.checker.CheckCallback(http.MethodPost, operation, name, one.request); err != nil {
		d.t.Errorf("%s: %v", one.what, err)
	}
	d.came[one.what] = true
}

// TestBodiesAreDescribed: what a server sends to receivers is as the description of the interface
// says.
func TestBodiesAreDescribed(t *testing.T) {
	t.Parallel()
	url, all := collect(t)
	c := server(t)
	checker, err := contracttest.New(openapi.Document())
	if err != nil {
		t.Fatal(err)
	}
	d := &described{t, all, checker, map[string]bool{}}
	hook := c.do(http.StatusCreated, "POST", "/webhooks", "", `{"url":"`+url+`/event"}`)
	c.do(http.StatusAccepted, "POST", "/webhooks/"+hook.ID+"/test", "", "")
	d.want("/event webhook.test")
	c.do(http.StatusOK, "POST", "/webhooks/callback-secret/rotate", "", "")
	for _, of := range []struct{ at, body string }{
		{"/locks/a", `{`}, {"/locksets", `{"locks":[{"name":"a"},{"name":"b","mode":"shared"}],`},
	} {
		held := c.do(
			http.StatusCreated, "POST", "/locks/a", "", `{"ttl_seconds":60,"metadata":{"job":"nightly"}}`,
		)
		async := of.body + `"ttl_seconds":15,"async":true,"callback_url":"` + url + of.at + `",`
		waits := c.do(
			http.StatusAccepted, "POST", of.at, "",
			async+`"wait_seconds":600,"request_release":{"within_seconds":5}}`,
		)
		c.do(http.StatusAccepted, "POST", of.at, "", async+`"wait_seconds":0.1}`)
		d.want(
			of.at+" lock.wait_timeout", "/event lock.wait_timeout", "/event lock.release_requested",
			"/event lock.enqueued",
		)
		c.do(http.StatusNoContent, "DELETE", "/locks/a", held.Token, "")
		d.want(of.at+" lock.acquired", "/event lock.acquired", "/event lock.released")
		c.do(
			http.StatusNoContent, "DELETE",
			map[bool]string{true: "/locks/a", false: "/locksets/" + waits.ID}[of.at == "/locks/a"],
			waits.Token, "",
		)
	}
	c.do(http.StatusCreated, "POST", "/locks/short", "", `{"ttl_seconds":2}`)
	d.want("/event lock.expired")
}
