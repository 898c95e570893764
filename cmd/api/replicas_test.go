package main

import (
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/test/poll"
)

// TestServerIsCounted: the built-in store has the list too.
func TestServerIsCounted(t *testing.T) {
	t.Parallel()
	s := start(t, "--jwt-secret-file", file(t, secret), "--data-dir", t.TempDir())
	poll.Until(t, "it counts itself", func() bool {
		resp, err := s.client.Get(s.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "fencepost_replicas 1\n")
	})
}
