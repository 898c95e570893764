package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/store/memory"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestReplicasAreCounted: each process of two on one store counts both, and the one that
// is left counts itself alone.
func TestReplicasAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Config{})
		defer server.Close()
		type process struct {
			*telemetry.Telemetry
			end func()
		}
		run := func() process {
			tel, err := telemetry.Setup(t.Context(), telemetry.Config{LogWriter: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			client := server.Connect(nil)
			replicas := newReplicas(client.Records(), tel)
			locks := service.New(service.Config{Store: client, TokenKey: make([]byte, 32), MinTTL: time.Second, Sharing: replicas.Sharing})
			stop := list(replicas, locks)
			return process{tel, func() {
				stop()
				locks.Close()
				client.Close()
				if err := tel.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			}}
		}
		shows := func(p process, n int) {
			t.Helper()
			synctest.Wait()
			answer := httptest.NewRecorder()
			p.MetricsHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if want := fmt.Sprintf("fencepost_replicas %d\n", n); !strings.Contains(answer.Body.String(), want) {
				t.Errorf("no %q in\n%s", want, answer.Body)
			}
		}
		a, b := run(), run()
		shows(a, 2)
		shows(b, 2)
		b.end()
		<-time.After(store.RecordLife + store.RecordLifeLate)
		shows(a, 1)
		a.end()
	})
}

// TestServerIsCounted: the built-in store has the list too.
func TestServerIsCounted(t *testing.T) {
	t.Parallel()
	s := start(t, "--jwt-secret-file", file(t, secret), "--data-dir", t.TempDir())
	eventually(t, "it counts itself", func() bool {
		resp, err := s.client.Get(s.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "fencepost_replicas 1\n")
	})
}
