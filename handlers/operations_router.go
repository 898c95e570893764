package handlers

import "github.com/gin-gonic/gin"

// NewOperations returns the router of an address for operations alone: health, readiness and
// metrics. It needs no more of cfg than these do.
func NewOperations(cfg Config) *Router {
	r := newEngine()
	a := newEndpoints(cfg)
	r.NoRoute(a.handle(policy{}, nothingHere))
	r.NoMethod(a.handle(policy{}, noSuchMethod))
	a.add(r, vitalRoutes(), metricsRoutes())
	return &Router{r, a}
}

func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	// Routes match the path as it was sent, and parameters arrive as they were
	// sent: gin would take "a%2Frenew" for two segments and "+" for a space.
	r.UseEscapedPath, r.UnescapePathValues = true, false
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleMethodNotAllowed = true
	return r
}
