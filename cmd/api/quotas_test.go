package main

import (
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/lock/quota"
)

// TestLimitFlags: each limit of tenants has its flag, which takes what the limit may be.
func TestLimitFlags(t *testing.T) {
	c := parsed(t, nil, "--jwt-secret-file", file(t, secret), "--tenant-held-locks", "7", "--tenant-sets=0")
	want := quota.Overrides{quota.HeldLocks: 7, quota.Sets: 0}.Over(quota.Standard())
	if *c.limits != *want {
		t.Errorf("the limits are %v, want %v", c.limits, want)
	}
	for _, wrong := range []string{"-1", "1001", "x", "1.5", ""} {
		_, err := parseConfig([]string{"--jwt-secret-file", file(t, secret), "--tenant-webhooks=" + wrong}, nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "tenant-webhooks") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
