package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// hangingCollector takes connections and never answers; taken tells that it has one.
func hangingCollector(t *testing.T) (address string, taken <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first, once := make(chan struct{}), sync.Once{}
	var mu sync.Mutex
	var open []net.Conn
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			once.Do(func() { close(first) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
		for _, conn := range open {
			_ = conn.Close()
		}
	})
	return l.Addr().String(), first
}

// TestCollectorIsAway: whether the collector of traces and metrics is dead or takes everything and
// never answers, requests are answered as ever, and the server ends in time.
func TestCollectorIsAway(t *testing.T) {
	hanging, taken := hangingCollector(t)
	for name, address := range map[string]string{"Dead": closedPort(t), "Hanging": hanging} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+address)
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
			t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
			secretFile := file(t, secret)
			s := start(t, "--jwt-secret-file", secretFile, "--data-dir", t.TempDir())
			token := bearer(t, secretFile)
			cycle := func(i int) {
				g := s.acquired(token, fmt.Sprint("orders:", i), "")
				if r := s.call(token, "DELETE", fmt.Sprint("/locks/orders:", i), "", "Lock-Token", g.text("token")); r.status != http.StatusNoContent {
					t.Fatalf("release: %d %v", r.status, r.body)
				}
			}
			away := func() bool {
				if address != hanging {
					return strings.Contains(s.log.String(), "connection refused")
				}
				select {
				case <-taken:
					return true
				default:
					return false
				}
			}
			n := 0
			for end := time.Now().Add(2 * time.Minute); !away() || n < 40; n++ {
				if time.Now().After(end) {
					t.Fatalf("%d requests later nobody has tried to send: %s", n, s.log)
				}
				cycle(n % 50)
			}
			if r := s.call("", "GET", "/readyz", ""); r.status != http.StatusOK {
				t.Errorf("it is not ready: %v", r.body)
			}
			// What could not be sent at the end is an error, which the exit code tells.
			if began := time.Now(); s.end() < 0 || time.Since(began) > 20*time.Second {
				t.Errorf("it ends with %d after %v", s.code, time.Since(began))
			}
		})
	}
}
