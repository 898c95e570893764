package handlers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/auth"
)

// BenchmarkAcquire is an acquire and a release of free locks by one client over
// HTTP on embedded etcd. "named, second lock" is by a worker that holds another
// lock, so that the order is learnt.
func BenchmarkAcquire(b *testing.B) {
	eight := `{"locks":[`
	for i := range 8 {
		eight += fmt.Sprintf(`{"name":"set:%d"},`, i)
	}
	eight = strings.TrimSuffix(eight, ",") + `]}`
	for _, c := range []struct{ name, path, body string }{
		{"one lock", "/locks/orders:42", ``},
		{"one lock, shared", "/locks/orders:42", `{"mode":"shared"}`},
		{"a set of 8", "/locksets", eight},
		{"named, first lock", "/locks/orders:42", `{"holder":"new"}`},
		{"named, second lock", "/locks/orders:42", `{"holder":"busy"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			own := newTenant(b).as(func(cl *auth.Claims) {})
			own.acquire("stock:7", body(`{"holder":"busy","ttl_seconds":600}`))
			for b.Loop() {
				var got struct{ ID, Token string }
				own.bench(b, "POST", c.path, c.body, "", &got)
				path := c.path
				if path == "/locksets" {
					path += "/" + got.ID
				}
				own.bench(b, "DELETE", path, "", got.Token, nil)
			}
		})
	}
}

// bench sends a request without the checks of the tests.
func (c *client) bench(b *testing.B, method, path, text, token string, into any) {
	r, err := http.NewRequestWithContext(b.Context(), method, c.replica.url+path, strings.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	if token != "" {
		r.Header.Set("Lock-Token", token)
	}
	resp, err := c.replica.transport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil || resp.StatusCode >= 300 {
		b.Fatalf("%s %s = %d %s, %v", method, path, resp.StatusCode, answer, err)
	}
}
