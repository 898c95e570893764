package handlers_test

import (
	"testing"

	"github.com/fencepost/fencepost/handlers"
)

// TestClientAddress: each trusted proxy appended the address that it saw, and a client can
// have sent all before these.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hops      int
		forwarded []string
		want      string
	}{
		"Direct":           {1, nil, "127.0.0.1"},
		"NoProxy":          {0, []string{"203.0.113.7"}, "127.0.0.1"},
		"OneProxy":         {1, []string{"203.0.113.7"}, "203.0.113.7"},
		"TwoProxies":       {2, []string{"203.0.113.7, 10.1.2.3"}, "203.0.113.7"},
		"TwoHeaders":       {2, []string{"203.0.113.7", "10.1.2.3"}, "203.0.113.7"},
		"ForgedHeader":     {1, []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		"Forged":           {2, []string{"10.9.9.9, 198.51.100.1, 203.0.113.7, 10.1.2.3"}, "203.0.113.7"},
		"Private":          {1, []string{"198.51.100.1, 10.9.9.9"}, "10.9.9.9"},
		"FewerThanProxies": {2, []string{"203.0.113.7"}, "203.0.113.7"},
		"Port":             {1, []string{"203.0.113.7:4711"}, "203.0.113.7"},
		"Version6":         {1, []string{"2001:db8::7"}, "2001:db8::7"},
		"Version6WithPort": {1, []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		"Version4In6":      {1, []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		"Zone":             {1, []string{"fe80::1%eth0\"x"}, "fe80::1"},
		"Nonsense":         {1, []string{"203.0.113.7, secret"}, "127.0.0.1"},
		"Unknown":          {3, []string{"203.0.113.7, unknown, 10.1.1.1"}, "10.1.1.1"},
		"Empty":            {1, []string{""}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := overRouter(
				t, &stub{}, func(config *handlers.Config) { config.TrustedProxyHops = tc.hops },
			)
			a := c.get("/healthz", header("X-Forwarded-For", tc.forwarded...))
			if got := shared.journal.request(t, a.header.Get("X-Request-Id"))["client"]; got != tc.want {
				t.Errorf("client = %v, want %s", got, tc.want)
			}
		})
	}
}
