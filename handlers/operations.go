package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// health answers as long as the process lives. It asks the store nothing: a
// replica whose store is away must not be restarted for it.
//
// @Summary  Tell whether the process lives
// @Tags     operations
// @Produce  json
// @Success  200 {object} Health
// @Router   /healthz [get]
func (a *api) health(c *gin.Context) { respond(c, http.StatusOK, Health{Status: "ok"}) }

// ready tells whether requests are welcome: the store answers, the view is
// current, and the replica is not shutting down.
//
// @Summary  Tell whether the replica can serve
// @Tags     operations
// @Produce  json
// @Success  200 {object} Health
// @Failure  503 {object} Problem "store_unavailable, draining"
// @Router   /readyz [get]
func (a *api) ready(c *gin.Context) {
	if err := a.Locks.Ready(c.Request.Context()); err != nil {
		fail(c, err)
		return
	}
	respond(c, http.StatusOK, Health{Status: "ready"})
}

// openAPI serves the description of this interface.
//
// @Summary  Describe this interface
// @Tags     operations
// @Produce  json
// @Success  200 {object} object "OpenAPI 3"
// @Router   /openapi.json [get]
func (a *api) openAPI(c *gin.Context) { c.Data(http.StatusOK, "application/json", a.OpenAPI) }
