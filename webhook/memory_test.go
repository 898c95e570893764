package webhook_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/webhook"
)

// TestMemoryOfDrippingReceivers: attempts that do not end keep little each. What is measured
// has that of the receivers in it, which are in this process too.
func TestMemoryOfDrippingReceivers(t *testing.T) {
	_, roots, certificate := newTLS(t, nil)
	const receivers = 100
	var lines strings.Builder
	for i := range 120 {
		fmt.Fprintf(&lines, "%04d%s:\r\n", i, strings.Repeat("x", 100))
	}
	for name, test := range map[string]struct {
		secure bool
		head   string
		most   int64
	}{
		"plain":       {false, "HTTP/1.1 200 OK\r\nA: ", 64 << 10},
		"TLS":         {true, "HTTP/1.1 200 OK\r\nA: ", 96 << 10},
		"many fields": {false, "HTTP/1.1 200 OK\r\n" + lines.String() + "A:", 96 << 10},
		"body":        {false, "HTTP/1.1 200 OK\r\n" + lines.String() + "\r\n", 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			var dripping atomic.Int64
			r := newRaw(t, "127.0.0.1:0", func(conn net.Conn) {
				if test.secure {
					conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
				}
				readRequest(conn)
				_, _ = io.WriteString(conn, test.head)
				dripping.Add(1)
				for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
					if _, err := io.WriteString(conn, "x"); err != nil {
						tick.Stop()
						return
					}
				}
			})
			p := newPool(t, webhook.PoolConfig{PerTenant: 1000, Workers: 1 << 20})
			s := newSender(t, func(c *webhook.SenderConfig) { c.RootCAs = roots })
			url := r.url
			if test.secure {
				url = "https" + url[4:]
			}
			payload := make([]byte, webhook.MaxPayload)
			before := heap()
			for range receivers {
				p.Submit("acme", func(ctx context.Context) {
					s.Send(ctx, target(url), webhook.Message{ID: "1-0", Payload: payload})
				})
			}
			for deadline := time.Now().Add(50 * time.Second); dripping.Load() < receivers; <-time.After(
				10 * time.Millisecond,
			) {
				if time.Now().After(deadline) {
					t.Fatalf("%d are dripping", dripping.Load())
				}
			}
			each := (heap() - before) / receivers
			t.Logf("%d bytes for each attempt and its receiver", each)
			if each > test.most {
				t.Errorf("%d bytes for each attempt and its receiver", each)
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
