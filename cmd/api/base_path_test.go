package main

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// TestBasePath: whether a proxy passes the path on or leaves it out, clients see it.
func TestBasePath(t *testing.T) {
	t.Parallel()
	secretFile := file(t, secret)
	token := bearer(t, secretFile)
	operator := strings.TrimSpace(
		command(
			t, nil, "token", "--jwt-secret-file", secretFile, "--tenant", "acme", "--scope", "admin",
		).out,
	)
	s := start(
		t, "--jwt-secret-file", secretFile, "--data-dir", t.TempDir(), "--base-path", "/locks/fencepost",
		"--trusted-proxy-hops", "1",
	)
	for name, base := range map[string]string{
		"passed on": s.url, "left out": strippingProxy(t, s.url),
	} {
		t.Run(name, func(t *testing.T) {
			client := &server{t: t, url: base + "/locks/fencepost", client: s.client}
			held := client.acquired(token, "orders:1", "")
			waiting := client.call(token, "POST", "/locks/orders:1", `{"wait_seconds":60,"async":true}`)
			want := "/locks/fencepost/locks/orders:1/entries/" + waiting.text("id")
			if at := waiting.header.Get("Location"); at != want {
				t.Errorf("Location: %s, want %s", at, want)
			}
			client.call(token, "DELETE", "/locks/orders:1", "", "Lock-Token", waiting.text("token"))
			client.call(token, "DELETE", "/locks/orders:1", "", "Lock-Token", held.text("token"))
			for path, to := range map[string]string{"/dashboard": "/dashboard/", "/docs": "/docs/"} {
				if at := client.redirected(path); at != "/locks/fencepost"+to {
					t.Errorf("%s leads to %s", path, at)
				}
			}
			document := client.call(
				"", "GET", "/openapi.json", "",
			).body["servers"].([]any)[0].(map[string]any)
			if document["url"] != "/locks/fencepost/" {
				t.Errorf("the document is of %v", document)
			}
			signedIn := client.call("", "POST", "/dashboard/session", `{"bearer_token":"`+operator+`"}`)
			if c := signedIn.header.Get("Set-Cookie"); !strings.HasPrefix(
				c, "__Secure-fencepost-session=",
			) || !strings.Contains(c, "; Path=/locks/fencepost/;") {
				t.Errorf("%d, the cookie is %s", signedIn.status, c)
			}
			problem := client.call("", "GET", "/locks", "").text("type")
			if page := client.call(
				"", "GET", strings.TrimPrefix(problem, "/locks/fencepost"), "",
			); page.status != http.StatusOK || !strings.HasPrefix(problem, "/locks/fencepost/problems/") {
				t.Errorf("the page of %s: %d", problem, page.status)
			}
			if r := client.call("", "GET", "/dashboard/", ""); r.status != http.StatusOK {
				t.Errorf("the dashboard: %d", r.status)
			}
		})
	}
	for path, want := range map[string]int{
		"/readyz": http.StatusOK, "/locks/fencepost/readyz": http.StatusOK,
		"/locks/fencepost":                     http.StatusNotFound,
		"/locks/fencepostreadyz":               http.StatusUnauthorized,
		"/locks/%66encepost/readyz":            http.StatusNotFound,
		"/locks/fencepost//readyz":             http.StatusNotFound,
		"/locks/fencepost/locks%2F..%2Freadyz": http.StatusNotFound,
	} {
		if r := s.call("", "GET", path, ""); r.status != want {
			t.Errorf("GET %s = %d, want %d", path, r.status, want)
		}
	}
}

// redirected returns where a path leads.
func (s *server) redirected(path string) string {
	once := http.Client{
		Transport:     s.client.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := once.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		s.t.Fatal(err)
	}
	return answer.Header.Get("Location")
}

// strippingProxy publishes a server under a path that it does not pass on.
func strippingProxy(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/locks/fencepost")
	}}
	return "http://" + serveTest(t, proxy.ServeHTTP)
}
