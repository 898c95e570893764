package handlers

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/openapi"
)

// maxScrapes is how many may ask for the metrics at once: each has a picture of all
// of them in memory until its client has received it.
const maxScrapes = 4

// getHealth answers as long as the process lives. It asks the store nothing: a
// replica whose store is away must not be restarted for it.
//
// @Summary  Check that the process runs
// @Success  200 {object} api.Health
// @Router   /healthz [get]
func getHealth(r *request) (reply, error) {
	a := r.endpoints
	return ok(api.Health{Status: "ok", Version: a.Version, Commit: a.Commit}), nil
}

// getReadiness tells whether requests are welcome: the store answers, the view is
// current, the keys for bearer tokens are known, and the replica is not shutting down.
//
// @Summary  Check that the replica can serve
// @Success  200 {object} api.Health
// @Failure  503 {object} api.Problem "store_unavailable, draining"
// @Router   /readyz [get]
func getReadiness(r *request) (reply, error) {
	a := r.endpoints
	if err := a.Service.Ready(r.context()); err != nil {
		return reply{}, err
	}
	if a.KeysReady != nil {
		if err := a.KeysReady(); err != nil {
			return reply{}, &lock.Error{
				Code: lock.StoreUnavailable, Detail: err.Error(), RetryAfter: time.Second,
			}
		}
	}
	return ok(api.Health{Status: "ready"}), nil
}

// getDescription serves the description of this interface.
//
// @Summary  Read this description
// @Success  200 {object} object "OpenAPI 3"
// @Router   /openapi.json [get]
func getDescription(r *request) error {
	r.Data(http.StatusOK, "application/json", r.endpoints.OpenAPI)
	return nil
}

// getMetrics tells how much this replica does.
//
// @Summary  Read the metrics
// @Produce  text/plain,application/openmetrics-text
// @Success  200 {string} string "In the Prometheus text format, or in OpenMetrics if the client accepts it"
// @Failure  429 {object} api.Problem "overloaded"
// @Failure  413 {object} api.Problem "body_too_large"
// @Router   /metrics [get]
func getMetrics(r *request) error {
	if err := r.skipBody(); err != nil { // before it takes a slot, which it would keep meanwhile
		return err
	}
	a := r.endpoints
	if !a.scrapes.take("", 1) {
		return errOverloaded("reads of the metrics")
	}
	defer a.scrapes.give("", 1)
	a.Exposition.ServeHTTP(r.Writer, r.Request)
	return nil
}

// findPage leads to the page about this interface.
//
// @Summary  Redirect to the page of this API
// @Produce  html
// @Success  302 {string} string "To docs/"
// @Header   302 {string} Location "The page"
// @Router   /docs [get]
func findPage(r *request) error {
	r.Redirect(http.StatusFound, r.under("/docs/"))
	return nil
}

// getPage shows this interface to people.
//
// @Summary  Open the page of this API
// @Produce  html
// @Success  200 {string} string "A page that asks no other host for anything"
// @Router   /docs/ [get]
func getPage(r *request) error {
	r.endpoints.Docs.ServeHTTP(r.Writer, r.Request)
	return nil
}

// getPageFile is what the page loads.
//
// @Summary  Load a part of the page
// @Produce  text/css,text/javascript,image/png
// @Param    file path string true "Name of the file"
// @Success  200 {string} string "The file"
// @Failure  404 {object} api.Problem "not_found"
// @Router   /docs/{file} [get]
func getPageFile(r *request) error {
	if !openapi.IsDocsFile(r.Param("file")) {
		return nothingHere(r)
	}
	return getPage(r)
}

func nothingHere(*request) error {
	return lock.Errorf(lock.NotFound, "there is nothing at this path; /docs/ lists the paths")
}

// nowhere answers what has no route. Who opens the server's own address looks for a page.
func nowhere(r *request) error {
	if r.Request.URL.Path != "/" {
		return nothingHere(r)
	}
	return lock.Errorf(
		lock.NotFound,
		"there is nothing at this path; the dashboard is at /dashboard/, the API at /docs/",
	)
}

// noSuchMethod answers a path that has other methods, which Allow names: gin does not know that
// whatever has a GET has a HEAD too.
func noSuchMethod(r *request) error {
	const get = http.MethodGet
	if allowed := r.Writer.Header().Get("Allow"); slices.Contains(strings.Split(allowed, ", "), get) {
		r.Header("Allow", strings.Replace(allowed, get, get+", "+http.MethodHead, 1))
	}
	return lock.Errorf(
		lock.MethodNotAllowed, "this path has no such method; use a method of the Allow header",
	)
}
