package handlers_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/test/poll"
)

// TestBodyThatNeverComes: a client that announces a body and does not send it is answered, and
// takes no more memory than one that does not read its answer.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	config := shared.handlers(&stub{page: largePage()})
	config.AnswerTimeout = 3 * time.Second // in which a busy machine receives a large answer
	router := handlers.New(config)
	r := serve(nil, router)
	t.Cleanup(r.close)
	c := newTenant(t).at(r)
	for name, tc := range map[string]struct {
		method, path, more string
		status             int
	}{
		"Refused":      {"POST", "/locks/a", "Content-Length: 10\r\n", http.StatusUnauthorized},
		"Chunked":      {"POST", "/locks/a", "Transfer-Encoding: chunked\r\n", http.StatusUnauthorized},
		"NotFound":     {"GET", "/nowhere", "Content-Length: 10\r\n", http.StatusNotFound},
		"ForEverybody": {"GET", "/openapi.json", "Content-Length: 10\r\n", http.StatusOK},
		"Large": {
			"GET", "/locks", "Content-Length: 10\r\nAuthorization: Bearer " + c.bearer + "\r\n",
			http.StatusOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, r)
			conn.write(tc.method + " " + tc.path + " HTTP/1.1\r\nHost: x\r\n" + tc.more + "\r\n")
			if a, goesOn := conn.read(tc.method); a.status != tc.status || goesOn {
				t.Errorf("%d, and the connection goes on: %v", a.status, goesOn)
			}
			poll.Within(t, 20*time.Second, "nothing of it is kept", func() bool {
				return router.InFlight() == 0
			})
		})
	}
}

// TestScrapesWithoutTheirBodies: clients that announce bodies and do not send them keep no client
// from the metrics.
func TestScrapesWithoutTheirBodies(t *testing.T) {
	t.Parallel()
	r := serve(nil, handlers.New(shared.handlers(shared.main.service)))
	t.Cleanup(r.close)
	for range 5 {
		dial(t, r).write("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	}
	for range 20 { // while these arrive
		if a := newTenant(t).at(r).get("/metrics"); a.status != http.StatusOK {
			t.Fatalf("the metrics are answered %d", a.status)
		}
	}
}

// TestStreamWithABody: a body means nothing to a stream, and does not end it.
func TestStreamWithABody(t *testing.T) {
	t.Parallel()
	r := streaming(t, func(*service.Config) {}, func(h *handlers.Config) {
		// A busy machine may stop a write for less than this, which ends the stream.
		h.AnswerTimeout, h.Heartbeat = 2*time.Second, 50*time.Millisecond
	})
	c := newTenant(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(
		ctx, http.MethodGet, r.url+"/events", strings.NewReader("{}"),
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	resp, err := r.transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	some := make([]byte, 4<<10)
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		if _, err := resp.Body.Read(some); err != nil {
			t.Fatalf("it ends after %v: %v", time.Since(began), err)
		}
	}
}
