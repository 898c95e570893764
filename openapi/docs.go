package openapi

import (
	"embed"
	"io"
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
		file, err := open(name)
		if path.Base(dir) != "docs" || err != nil {
			http.NotFound(w, r)
			return
		}
		defer func() { _ = file.Close() }() // reading is over
		h := w.Header()
		h.Set("Content-Type", contentType(name))
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "max-age=3600")
		_, _ = io.Copy(w, file) // piece by piece: the largest is 1.4 MB. The reader may have gone
	})
}

// IsDocsFile reports whether /docs/ has a file of the name.
func IsDocsFile(name string) bool {
	file, err := open(name)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// open opens a file of the page. Of Swagger UI it is those that the page loads,
// which are a quarter of what there is.
func open(name string) (fs.File, error) {
	switch name {
	case "":
		return pages.Open("docs/index.html")
	case "start.js":
		return pages.Open("docs/start.js")
	case "swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png":
		return swaggerui.FS.Open(name)
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
