package handlers

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/openapi"
)

// maxScrapes is how many may ask for the metrics at once: each has a picture of all
// of them in memory until its client has received it.
const maxScrapes = 4

// health answers as long as the process lives. It asks the store nothing: a
// replica whose store is away must not be restarted for it.
//
// @Summary  Tell whether the process lives
// @ID       getHealth
// @Tags     operations
// @Produce  json
// @Success  200 {object} api.Health
// @Router   /healthz [get]
func (a *endpoints) health(c *gin.Context) { respond(c, http.StatusOK, api.Health{Status: "ok"}) }

// ready tells whether requests are welcome: the store answers, the view is
// current, and the replica is not shutting down.
//
// @Summary  Tell whether the replica can serve
// @ID       getReadiness
// @Tags     operations
// @Produce  json
// @Success  200 {object} api.Health
// @Failure  503 {object} api.Problem "store_unavailable, draining"
// @Router   /readyz [get]
func (a *endpoints) ready(c *gin.Context) {
	if err := a.Locks.Ready(c.Request.Context()); err != nil {
		fail(c, err)
		return
	}
	respond(c, http.StatusOK, api.Health{Status: "ready"})
}

// openAPI serves the description of this interface.
//
// @Summary  Describe this interface
// @ID       getDescription
// @Tags     operations
// @Produce  json
// @Success  200 {object} object "OpenAPI 3"
// @Router   /openapi.json [get]
func (a *endpoints) openAPI(c *gin.Context) { c.Data(http.StatusOK, "application/json", a.OpenAPI) }

// metrics tells how much this replica does.
//
// @Summary  Measure the replica
// @ID       getMetrics
// @Tags     operations
// @Produce  text/plain,application/openmetrics-text
// @Success  200 {string} string "In the Prometheus text format, or in OpenMetrics for those who accept it"
// @Failure  429 {object} api.Problem "overloaded"
// @Router   /metrics [get]
func (a *endpoints) metrics(c *gin.Context) {
	if !a.scrapes.TryAcquire(1) {
		fail(c, &lock.Error{Code: lock.Overloaded, Detail: "too many ask for the metrics at once", RetryAfter: time.Second})
		return
	}
	defer a.scrapes.Release(1)
	a.Exposition.ServeHTTP(c.Writer, c.Request)
}

// docs leads to the page about this interface.
//
// @Summary  Find the page about this interface
// @ID       findPage
// @Tags     operations
// @Produce  html
// @Success  302 {string} string "To docs/"
// @Header   302 {string} Location "The page"
// @Router   /docs [get]
func (a *endpoints) docs(c *gin.Context) { c.Redirect(http.StatusFound, "docs/") }

// docsPage shows this interface to people.
//
// @Summary  Read about this interface
// @ID       getPage
// @Tags     operations
// @Produce  html
// @Success  200 {string} string "A page that asks no other host for anything"
// @Router   /docs/ [get]
func (a *endpoints) docsPage(c *gin.Context) { a.Docs.ServeHTTP(c.Writer, c.Request) }

// docsFile is what the page loads.
//
// @Summary  Load a part of the page
// @ID       getPageFile
// @Tags     operations
// @Produce  text/css,text/javascript,image/png
// @Param    file path string true "Name of the file"
// @Success  200 {string} string "The file"
// @Failure  404 {object} api.Problem "not_found"
// @Router   /docs/{file} [get]
func (a *endpoints) docsFile(c *gin.Context) {
	if !openapi.IsDocsFile(c.Param("file")) {
		nothingHere(c)
		return
	}
	a.Docs.ServeHTTP(c.Writer, c.Request)
}

func nothingHere(c *gin.Context) {
	fail(c, lock.Errorf(lock.NotFound, "there is nothing at this path"))
}
