package handlers_test

import (
	"net/netip"
	"testing"

	"github.com/fencepost/fencepost/handlers"
)

// TestClientAddress: of what X-Forwarded-For says only that is believed which a
// trusted proxy has seen itself.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	behind := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, tc := range map[string]struct {
		trusted   []netip.Prefix
		forwarded []string
		want      string
	}{
		"Direct":           {behind, nil, "127.0.0.1"},
		"TrustsNobody":     {nil, []string{"203.0.113.7"}, "127.0.0.1"},
		"TrustsOthers":     {behind[1:], []string{"203.0.113.7"}, "127.0.0.1"},
		"OneProxy":         {behind, []string{"203.0.113.7"}, "203.0.113.7"},
		"TwoProxies":       {behind, []string{"203.0.113.7, 10.1.2.3"}, "203.0.113.7"},
		"TwoHeaders":       {behind, []string{"203.0.113.7", "10.1.2.3"}, "203.0.113.7"},
		"ForgedHeader":     {behind, []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		"Forged":           {behind, []string{"10.9.9.9, 198.51.100.1, 203.0.113.7, 10.1.2.3"}, "203.0.113.7"},
		"ForgedAsTrusted":  {behind, []string{"198.51.100.1, 10.9.9.9, 203.0.113.7"}, "203.0.113.7"},
		"AllTrusted":       {behind, []string{"10.1.1.1, 10.2.2.2"}, "10.1.1.1"},
		"Port":             {behind, []string{"203.0.113.7:4711"}, "203.0.113.7"},
		"Version6":         {behind, []string{"2001:db8::7, fd00::1"}, "2001:db8::7"},
		"Version6WithPort": {behind, []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		"Version4In6":      {behind, []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		"Zone":             {behind, []string{"fe80::1%eth0\"x"}, "fe80::1"},
		"Nonsense":         {behind, []string{"203.0.113.7, secret"}, "127.0.0.1"},
		"Unknown":          {behind, []string{"203.0.113.7, unknown, 10.1.1.1"}, "10.1.1.1"},
		"Empty":            {behind, []string{""}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := overRouter(t, &stub{}, func(config *handlers.Config) { config.TrustedProxies = tc.trusted })
			a := c.get("/healthz", header("X-Forwarded-For", tc.forwarded...))
			if got := shared.journal.request(t, a.header.Get("X-Request-Id"))["client"]; got != tc.want {
				t.Errorf("client = %v, want %s", got, tc.want)
			}
		})
	}
}
