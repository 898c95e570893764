package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestHeadersAreFew: a request keeps its headers for as long as it waits, and many short
// ones take ten times their bytes.
func TestHeadersAreFew(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	head := "GET /locks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + c.bearer + "\r\n"
	different := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-%d:\r\n", i)
		}
		return b.String()
	}
	conn := dial(t, shared.main)
	for _, more := range []string{different(99), strings.Repeat("X:\r\n", 99)} {
		conn.write(head + more + "\r\n")
		if a, _ := conn.read(http.MethodGet); a.status != http.StatusOK {
			t.Errorf("100 header fields: %v", a)
		}
	}
	for _, more := range []string{
		different(100), strings.Repeat("X:\r\n", 100), different(50) + strings.Repeat("X:\r\n", 50),
	} {
		conn.write(head + more + "\r\n")
		a, _ := conn.read(http.MethodGet)
		a.wantProblem(malformed("the request has too many header fields; send 100 at most"))
	}
	for _, traced := range []string{
		"", "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n",
	} {
		head := "POST /locks/orders:42 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + traced +
			"Authorization: Bearer " + c.bearer + "\r\n\r\n2\r\n{}\r\n0\r\n"
		conn.write(head + different(101) + "\r\n") // behind the body they are as many
		a, _ := conn.read(http.MethodPost)
		a.wantProblem(malformed("the request has too many header fields; send 100 at most"))
	}
	conn.write(
		"GET /healthz HTTP/1.1\r\nHost: x\r\n" + different(101) + "\r\n",
	) // nor for an unauthenticated caller
	if a, _ := conn.read(http.MethodGet); a.status != http.StatusBadRequest {
		t.Errorf("101 header fields to /healthz: %v", a)
	}
}
