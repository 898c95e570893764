package handlers

import (
	"net/http"
	"net/url"
	"strings"
)

// under returns a path of ours as clients see it.
func (r *request) under(path string) string { return r.endpoints.BasePath + path }

// withoutBase returns a request with a path of ours. A proxy may leave the base path out, and
// probes do not know it, so a request without it is one already.
func (a *endpoints) withoutBase(req *http.Request) *http.Request {
	path, ok := cutBase(req.URL.Path, a.BasePath)
	raw, rawToo := cutBase(req.URL.RawPath, a.BasePath)
	if a.BasePath == "" || !ok || req.URL.RawPath != "" && !rawToo {
		return req
	}
	out := *req
	out.URL = new(url.URL)
	*out.URL = *req.URL
	out.URL.Path, out.URL.RawPath = path, raw
	return &out
}

// cutBase reports whether a path is the base path or below it, and what follows that.
func cutBase(path, base string) (string, bool) {
	rest, ok := strings.CutPrefix(path, base)
	switch {
	case !ok:
		return "", false
	case rest == "":
		return "/", true
	}
	return rest, rest[0] == '/'
}
