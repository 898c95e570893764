package handlers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkAcquire is an acquire and a release of free locks by one client over
// HTTP on embedded etcd, each kind in turn so that the machine is the same for
// all. It reports medians in microseconds. "second" is by a worker that holds
// another lock, so that the order is learnt; "first" is by one that does not.
func BenchmarkAcquire(b *testing.B) {
	eight := `{"locks":[`
	for i := range 8 {
		eight += fmt.Sprintf(`{"name":"set:%d"},`, i)
	}
	kinds := []struct{ name, path, body string }{
		{"one", "/locks/orders:1", ``},
		{"set8", "/locksets", strings.TrimSuffix(eight, ",") + `]}`},
		{"first", "/locks/orders:2", `{"holder":"new"}`},
		{"second", "/locks/orders:3", `{"holder":"old"}`},
	}
	own := newTenant(b)
	own.acquire("stock:7", body(`{"holder":"old","ttl_seconds":3600}`))
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, k := range kinds {
			began := time.Now()
			var got struct{ ID, Token string }
			own.bench(b, "POST", k.path, k.body, "", &got)
			path := k.path
			if path == "/locksets" {
				path += "/" + got.ID
			}
			own.bench(b, "DELETE", path, "", got.Token, nil)
			took[k.name] = append(took[k.name], time.Since(began))
		}
	}
	for _, k := range kinds {
		slices.Sort(took[k.name])
		b.ReportMetric(float64(took[k.name][len(took[k.name])/2].Microseconds()), "µs/"+k.name)
	}
}

// bench sends a request without the checks of the tests.
func (c *client) bench(b *testing.B, method, path, text, token string, into any) {
	r, err := http.NewRequestWithContext(
		b.Context(), method, c.replica.url+path, strings.NewReader(text),
	)
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
