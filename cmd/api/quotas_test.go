package main

import (
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
