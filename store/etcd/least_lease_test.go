package etcd_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/test/rig"
)

// warnings are what a store warns of.
type warnings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *warnings) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *warnings) has(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.text.String(), what)
}

// TestLongElections: the start logs servers that keep leases for longer than promised, and only
// those.
func TestLongElections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ timeout, says string }{{"5000", "least_lease=8s"}, {"1000", ""}} {
		t.Run(c.timeout, func(t *testing.T) {
			t.Parallel()
			cluster := startEtcd(t, rig.EtcdConfig{ExtraArgs: []string{"--election-timeout=" + c.timeout}})
			log := &warnings{}
			s := openStore(t, connect(t, cluster.Endpoints()), etcd.Config{
				Prefix: "/long/",
				Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
			})
			e := newEntry("a", "short")
			e.TTL = etcd.MinTTL
			mustEnqueue(t, s, e)
			if c.says == "" {
				if log.has("least_lease") {
					t.Error("it warns of elections of 1 s")
				}
				return
			}
			for end := time.After(time.Minute); !log.has(c.says); {
				select {
				case <-time.After(20 * time.Millisecond):
				case <-end:
					t.Fatalf("it does not say %s", c.says)
				}
			}
		})
	}
}
