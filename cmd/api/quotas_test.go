package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/quota"
)

// TestDefaultQuotas: the flag, its variable and a map in the settings file set the limits that they
// name, and no others.
func TestDefaultQuotas(t *testing.T) {
	want := quota.Overrides{"held_locks": 7, "sets": 0}.Over(quota.Standard())
	args := []string{"--jwt-secret-file", file(t, secret)}
	settings := "default-quotas:\n  held_locks: 7\n  sets: 0\n"
	for _, c := range []*config{
		parsed(t, nil, append(args, "--default-quotas", "held_locks=7,sets=0")...),
		parsed(t, environment{"FENCEPOST_DEFAULT_QUOTAS": "held_locks=7,sets=0"}, args...),
		parsed(t, nil, append(args, "--config", file(t, settings))...),
		parsed(t, nil, append(args, "--config", file(t, "default-quotas: {held_locks: 7, sets: 0}"))...),
	} {
		if *c.limits != *want {
			t.Errorf("the limits are %v, want %v", c.limits, want)
		}
	}
	for _, wrong := range []string{"-1", "1001", "x", "1.5", ""} {
		_, err := parseConfig(append(args, "--default-quotas=webhooks="+wrong), nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "default-quotas") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestMetricsTenants: tenants are named in the metrics if the operator wants that, so many as he
// wants, and by default none.
func TestMetricsTenants(t *testing.T) {
	t.Parallel()
	secretFile := file(t, secret)
	beta := command(t, nil, "token", "--jwt-secret-file", secretFile, "--tenant", "beta")
	for _, c := range []struct {
		args  []string
		named string // acme's and beta's
	}{{nil, "false false"}, {[]string{"--metrics-tenants", "1"}, "true false"}, {[]string{"--metrics-tenants", "2"}, "true true"}} {
		s := start(t, append([]string{"--jwt-secret-file", secretFile, "--data-dir", t.TempDir()}, c.args...)...)
		figure := func(tenant string) string {
			return s.figure(`fencepost_quota_usage{quota="held_locks",tenant="` + tenant + `"}`)
		}
		shown := func() string { return fmt.Sprint(figure("acme") == "1", " ", figure("beta") == "1") }
		s.acquired(bearer(t, secretFile), "orders:1", "")
		eventually(t, "the first is counted", func() bool { return figure("acme") == "1" || figure("other") == "1" })
		s.acquired(strings.TrimSpace(beta.out), "orders:1", "")
		eventually(t, "the figures are "+c.named, func() bool { return shown() == c.named })
		if got := figure("other"); (got == "1") != (c.named != "true true") {
			t.Errorf("%q: others use %q", c.args, got)
		}
	}
	fails(t, exitConfig, nil, []string{"--jwt-secret-file", secretFile, "--metrics-tenants", "151"}, "--metrics-tenants: must be from 0 to 150")
}
