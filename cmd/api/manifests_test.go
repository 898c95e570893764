package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestManifestsDoNotTrustClientsAsProxies: behind the proxy of each manifest, which has a private
// address and sees clients with private addresses too, the server logs the address that this proxy
// saw.
func TestManifestsDoNotTrustClientsAsProxies(t *testing.T) {
	t.Parallel()
	flags := regexp.MustCompile(`(?m)--trusted-prox\S+|FENCEPOST_TRUSTED_PROX\S+|^trusted-proxy\S+ \d`)
	for name, path := range map[string]string{
		"compose": "compose.yaml", "kubernetes": "kubernetes/production.yaml",
		"systemd": "systemd/three-machines.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../deploy/" + path)
			hops := flags.FindAllString(string(text), -1)
			if err != nil || len(hops) != 1 {
				t.Fatalf("the flags for proxies are %q, %v", hops, err)
			}
			if key, n, is := strings.Cut(hops[0], ": "); is {
				hops[0] = "--" + key + "=" + n
			}
			if variable, n, is := strings.Cut(hops[0], "="); is && strings.HasPrefix(variable, envPrefix) {
				hops[0] = "--" + strings.ReplaceAll(
					strings.ToLower(strings.TrimPrefix(variable, envPrefix)), "_", "-",
				) + "=" + n
			}
			s := start(t, append(hops, "--jwt-secret-file", file(t, secret), "--data-dir", t.TempDir())...)
			s.call("", "GET", "/locks", "", "X-Forwarded-For", "203.0.113.9, 172.18.0.1")
			s.end() // the log is complete
			if log := s.log.String(); !strings.Contains(log, `"client":"172.18.0.1"`) {
				t.Errorf("the server believes the client: %s", log)
			}
		})
	}
}
