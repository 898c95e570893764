// Package dashboard is the page on which operators see holders, the entries that wait for
// them, and why it is slow. It is a program in TypeScript (src/) that asks the API of the
// server that it came from. `make dashboard` builds it into dist/, from where it is
// embedded here; a server that was built without it says how to build it.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// policy lets the page load its own files and ask its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const notBuilt = `<!doctype html><html lang="en"><title>Fencepost</title>
<h1>The dashboard is not in this server</h1>
<p>It was built without it. With Node 20 or later, <code>make build</code> builds both, and <code>make run</code> runs them.</p>
<p>The interface is at <a href="../docs/">docs/</a>.</p></html>
`

// Pages are the files of the dashboard, ready to be sent.
type Pages struct {
	page   *file
	assets map[string]*file
}

// file is one file in both forms in which it is sent.
type file struct {
	kind         string // its media type
	lasts        string // its Cache-Control
	plain, small []byte // small is compressed
}

// Built returns the dashboard that this program was built with.
func Built() (*Pages, error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return New(built)
}

// New returns the dashboard that Vite has built into a folder: index.html, and what that
// loads in assets. Without index.html the page says how to build it.
func New(built fs.FS) (*Pages, error) {
	p := &Pages{assets: map[string]*file{}}
	page, err := fs.ReadFile(built, "index.html")
	if errors.Is(err, fs.ErrNotExist) {
		page, err = []byte(notBuilt), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	if p.page, err = newFile("index.html", page); err != nil {
		return nil, err
	}
	names, err := fs.Glob(built, "assets/*")
	if err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(built, name)
		if err != nil {
			return nil, fmt.Errorf("read the dashboard: %w", err)
		}
		if p.assets[path.Base(name)], err = newFile(name, text); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// newFile compresses once what is sent often.
func newFile(name string, text []byte) (*file, error) {
	f := &file{kind: kindOf(name), lasts: "no-cache", plain: text}
	if hashed().MatchString(name) {
		f.lasts = "public, max-age=31536000, immutable"
	}
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	f.small = small.Bytes()
	return f, nil
}

// hashed matches names that have the hash of their content in them, as Vite gives them:
// under such a name there is never anything else.
func hashed() *regexp.Regexp { return regexp.MustCompile(`-[A-Za-z0-9_-]{8}\.[a-z0-9]+$`) }

// kindOf does not ask the machine, whose list of types may be of any kind.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	}
	return "text/html; charset=utf-8"
}

// ServePage answers with the page.
func (p *Pages) ServePage(w http.ResponseWriter, r *http.Request) { p.page.serve(w, r) }

// ServeAsset answers with one of the files that the page loads. It reports false, and does
// nothing, if there is none of the name.
func (p *Pages) ServeAsset(w http.ResponseWriter, r *http.Request, name string) bool {
	f := p.assets[name]
	if f == nil {
		return false
	}
	f.serve(w, r)
	return true
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", f.lasts)
	h.Set("Vary", "Accept-Encoding")
	body := f.plain
	if takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.small
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the reader may have gone
}

// takesGzip reports whether a client names gzip, and not with a weight of 0.
func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		name, weight, weighed := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";q=")
		if strings.EqualFold(name, "gzip") && (!weighed || strings.Trim(weight, "0.") != "") {
			return true
		}
	}
	return false
}
