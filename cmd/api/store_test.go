package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestFeedThatNeverStarts: the alarm at a lag of 2 s goes off.
func TestFeedThatNeverStarts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tel, err := telemetry.Setup(t.Context(), telemetry.Config{LogWriter: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		observeStore(tel)
		<-time.After(time.Minute)
		answer := httptest.NewRecorder()
		tel.MetricsHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if !strings.Contains(answer.Body.String(), "fencepost_feed_lag_seconds 60\n") {
			t.Errorf("not a minute behind:\n%s", answer.Body)
		}
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStoreAddress(t *testing.T) {
	type parsed struct {
		Backend, Chroot string
		Endpoints       []string
	}
	for address, want := range map[string]parsed{
		"embedded":        {Backend: "embedded"},
		"etcd://a:1,b:2":  {Backend: "etcd", Endpoints: []string{"a:1", "b:2"}},
		"etcd://a:1/":     {Backend: "etcd", Endpoints: []string{"a:1"}},
		"etcd://a:1/path": {},
		"zookeeper://a:1": {Backend: "zookeeper", Endpoints: []string{"a:1"}},
		"zookeeper://a:1,b:2,[::1]:3/locks/prod": {
			Backend: "zookeeper", Chroot: "/locks/prod", Endpoints: []string{"a:1", "b:2", "[::1]:3"},
		},
		"zookeeper://a:65535/": {Backend: "zookeeper", Endpoints: []string{"a:65535"}},
		"zookeeper://a:1/locks_1.a=b@c": {
			Backend: "zookeeper", Chroot: "/locks_1.a=b@c", Endpoints: []string{"a:1"},
		},
		"zookeeper://a:1/locks/":      {},
		"zookeeper://a:1/locks//prod": {},
		"zookeeper://a:1/../locks":    {},
		"zookeeper://a/locks":         {},
		"zookeeper://a:1//":           {},
		"zookeeper://a:1/locks?x=1":   {},
		"zookeeper://a:1?x=1":         {},
		"zookeeper://a:1/locks#x":     {},
		"zookeeper://a:1/a%2Fb":       {},
		"zookeeper://a:1/a b":         {},
		"zookeeper://a:1/a\nb":        {},
		"zookeeper://a:1/a,b:2/a":     {},
		"zookeeper://:1/locks":        {},
		"zookeeper://a:1,:2/locks":    {},
		"zookeeper://a:99999/x":       {},
		"zookeeper://a:65536":         {},
		"zookeeper://a:0":             {},
		"zookeeper://a:-1":            {},
		"zookeeper://a:+1":            {},
		"zookeeper://a:":              {},
		"etcd://a:99999":              {},
		"etcd://a:1,:2":               {},
		"etcd://a:client":             {},
		"zookeeper://":                {},
		"redis://a:1":                 {},
	} {
		env := environment{envSecret: "0123456789abcdef0123456789abcdef"}
		c, err := parseConfig([]string{"--store", address}, env, io.Discard)
		if err != nil {
			c = &config{}
		}
		if (err == nil) != (want.Backend != "") {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if diff := cmp.Diff(want, parsed{c.backend, c.chroot, c.endpoints}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}

// TestReasonOf: the alarms tell a store that lost its past from one that a newer version uses.
func TestReasonOf(t *testing.T) {
	for want, refusal := range map[string]error{
		"":                            nil,
		telemetry.RefusedNewerVersion: fmt.Errorf("as it is: %w", store.ErrNewerForm),
		telemetry.RefusedLostPast:     errors.New("a fence went back"),
	} {
		if got := reasonOf(refusal); got != want {
			t.Errorf("of %v: %q, want %q", refusal, got, want)
		}
	}
}

// TestEmbeddedSize: how full the embedded store is is in the metrics, with what it may have.
func TestEmbeddedSize(t *testing.T) {
	t.Parallel()
	s := start(
		t, "--jwt-secret-file", file(t, secret), "--data-dir", t.TempDir(), "--data-quota-mb", "64",
	)
	if got := s.figure("fencepost_store_quota_bytes"); got != "6.7108864e+07" {
		t.Errorf("the quota is %q", got)
	}
	used, err := strconv.ParseFloat(s.figure("fencepost_store_used_bytes"), 64)
	if err != nil || used < 1<<10 || used > 16<<20 {
		t.Errorf("an empty store uses %v bytes, %v", used, err)
	}
}
