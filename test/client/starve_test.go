package client_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/client"
)

// waiting is a server that grants the lock held, and lets calls for other locks wait.
type waiting struct {
	waits, renewals atomic.Int64
	over            chan struct{}
}

func (s *waiting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const held = `{"id":"e","state":"held","token":"t","ttl_seconds":6,"fence":1}`
	switch {
	case r.Method == http.MethodPost && r.URL.Path != "/locks/held":
		s.waits.Add(1)
		select {
		case <-s.over:
		case <-r.Context().Done():
		}
	case r.Method == http.MethodPut:
		s.renewals.Add(1)
	}
	_, _ = io.WriteString(w, held)
}

// TestWaitsDoNotStarveRenewals: a holder renews and releases while 300 calls wait, on connections
// that are bounded.
func TestWaitsDoNotStarveRenewals(t *testing.T) {
	for name, kind := range map[string]struct {
		tls, http2 bool
		conns      int
		waits      int64 // that a server sees: it has 250 streams of a connection
	}{
		"http1": {conns: 300, waits: 300}, "http1 tls": {tls: true, conns: 300, waits: 300},
		"http2":     {http2: true, conns: 1, waits: 250},
		"http2 tls": {tls: true, http2: true, conns: 1, waits: 250},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &waiting{over: make(chan struct{})}
			server := httptest.NewUnstartedServer(s)
			protocols := new(http.Protocols)
			protocols.SetHTTP1(!kind.http2)
			protocols.SetHTTP2(kind.http2)
			protocols.SetUnencryptedHTTP2(kind.http2)
			server.Config.Protocols = protocols
			server.EnableHTTP2 = kind.http2
			if kind.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			transport := &http.Transport{
				MaxConnsPerHost: kind.conns, Protocols: protocols,
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // of the test
			}
			c, err := client.New(client.Config{
				URLs: []string{server.URL}, Token: client.Bearer("T"), HTTP: &http.Client{Transport: transport},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			defer close(s.over)
			s.play(t, c, kind.waits)
		})
	}
}

func (s *waiting) play(t *testing.T, c *client.Client, waits int64) {
	t.Helper()
	for range 300 {
		go func() { _, _ = c.Lock(t.Context(), "busy", client.Options{}) }()
	}
	await(t, func() bool { return s.waits.Load() >= waits })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	held, err := c.TryLock(ctx, "held", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return s.renewals.Load() > 0 || held.Check() != nil })
	if err := held.Release(ctx); err != nil {
		t.Error(err)
	}
}
