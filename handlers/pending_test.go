//go:build pending

package handlers_test

import (
	"net/http"
	"testing"
)

// TestWaitedSecondsOfAResume: a request that comes back after the grant is told
// how long the entry waited, as its owner is who looks at the entry.
func TestWaitedSecondsOfAResume(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:42")
	const text = `{"wait_seconds":20}`
	e := c.at(shared.brief).post("/locks/orders:42", body(text), key("k")).waiting(http.StatusAccepted)
	c.release(first)
	seen := c.get(entryPath(e)+"?wait_seconds=5", lockToken(e.Token)).held(http.StatusOK)
	again := c.post("/locks/orders:42", body(text), key("k")).held(http.StatusCreated)
	if *again.WaitedSeconds < briefHold.Seconds() || *seen.WaitedSeconds < briefHold.Seconds() {
		t.Errorf("waited_seconds = %v of a POST and %v of a GET, want more than %v", *again.WaitedSeconds, *seen.WaitedSeconds, briefHold)
	}
}
