package openapi

import (
	"embed"
	"io/fs"
	"net/http"
	"path"

	swaggerui "github.com/swaggo/files/v2"
)

//go:embed docs/index.html docs/start.js
var pages embed.FS

// policy lets the page load its own files and ask its own server, and nothing
// else. Swagger UI draws its icons from data URLs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Docs shows the description to people, with Swagger UI, at /docs/. The page loads
// the description from ../openapi.json, whatever comes before /docs/, and nothing
// from any other host.
func Docs() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dir, name := path.Split(r.URL.Path)
		content, err := read(name)
		if path.Base(dir) != "docs" || err != nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", contentType(name))
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(content) // the reader has gone
	})
}

// read returns a file of the page. Of Swagger UI it is those that the page loads,
// which are a quarter of what there is.
func read(name string) ([]byte, error) {
	switch name {
	case "":
		return pages.ReadFile("docs/index.html")
	case "start.js":
		return pages.ReadFile("docs/start.js")
	case "swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png":
		return fs.ReadFile(swaggerui.FS, name)
	}
	return nil, fs.ErrNotExist
}

// contentType does not ask the machine, whose list of types may be of any kind.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".png":
		return "image/png"
	}
	return "text/html; charset=utf-8"
}
