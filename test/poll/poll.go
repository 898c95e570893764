// Package poll waits, in tests, for what sends no signal.
package poll

import (
	"testing"
	"time"
)

// Until polls until holds returns true. After a minute the test fails.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Within(t, time.Minute, what, holds)
}

// Within is like [Until] with another limit. Long limits, of bubbles, have longer pauses.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	pause := max(5*time.Millisecond, limit/10_000)
	for end := time.Now().Add(limit); !holds(); <-time.After(pause) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
