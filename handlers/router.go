package handlers

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
)

// Service joins queues, waits and follows events; [service.Service] does.
type Service interface {
	Acquire(context.Context, service.AcquireRequest) (*service.Grant, error)
	Entry(ctx context.Context, req service.TokenRequest, wait time.Duration) (*service.Grant, error)
	Events(context.Context, service.EventsRequest) (*service.EventStream, error)
	Ready(context.Context) error
}

// Entries renew, release and revoke; [service.Entries] does.
type Entries interface {
	Renew(context.Context, service.TokenRequest) (*service.Grant, error)
	Release(context.Context, service.TokenRequest) error
	Genuine(service.TokenRequest) bool
	Revoke(context.Context, service.RevokeRequest) (*service.Revoked, error)
	RevokeAll(context.Context, []service.RevokeRequest) []service.RevokeOutcome
}

// Locks are the locks that this replica sees; [service.Locks] has them.
type Locks interface {
	Lock(
		ctx context.Context, r lock.Ref, consistent bool, long func(read func()) error,
	) (*service.LockView, error)
	List(context.Context, service.ListRequest) (*view.Page, error)
	LockOrder(tenant string, limit int) figures.OrderReport
	Deadlocks(tenant string, limit int) []view.Deadlock
	Used(tenant string) quota.Limits
	Revision() uint64
	Started() time.Time
}

// StaleWrites takes reports; [service.StaleWrites] does.
type StaleWrites interface {
	ReportStaleWrite(ctx context.Context, r lock.Ref, w lock.StaleWrite) error
}

// Closures close and open locks; [closures.Book] does.
type Closures interface {
	Close(context.Context, closures.CloseRequest) (*lock.Closure, error)
	Open(context.Context, closures.OpenRequest) error
	List(ctx context.Context, tenant string) ([]*lock.Closure, error)
}

// Verifier turns a bearer token into who sent it; [auth.Verifier] does.
type Verifier interface {
	Verify(ctx context.Context, raw string) (*auth.Principal, error)

	// Known returns who sent a token that was verified before, or nil. It computes no signature.
	Known(raw string) *auth.Principal
}

// Certificates identify the principal of a client certificate; no principal and no error is no
// certificate.
type Certificates interface {
	Identify(*tls.ConnectionState) (*auth.Principal, error)
}

// RequestMetrics counts requests. wait tells those that may take long because
// they wait for a lock.
type RequestMetrics interface {
	RequestStarted()
	RequestDone(ctx context.Context, method, route string, status int, wait bool, d time.Duration)
	QuotaRefused(ctx context.Context, quota string)
	StreamOpened(ctx context.Context, d time.Duration)
	StreamClosed(ctx context.Context, dropped bool)
}

// Config of the HTTP layer. All fields are required but those that say what they
// are without.
type Config struct {
	Service     Service
	Entries     Entries
	Locks       Locks
	StaleWrites StaleWrites
	Closures    Closures
	Webhooks    Webhooks
	Deliveries  Deliveries
	Audit       Audit
	Console     Console
	Quotas      Quotas
	Verifier    Verifier
	KeysReady   func() error // why no bearer token can be verified yet; nil has all keys
	Clients     Certificates // nil takes none
	Metrics     RequestMetrics
	Exposition  http.Handler // of /metrics; nil has none here
	OpenAPI     []byte       // the document of /openapi.json
	Docs        http.Handler // of /docs/, which it sees in the path
	Version     string       // of this program
	Commit      string       // that it was built from; empty if unknown
	Dashboard   Pages
	Sessions    Sessions
	Codes       Codes  // nil issues none
	SignIn      SignIn // nil has no identity provider

	// PlainCookies lets a session's cookie do without TLS: for a server that browsers reach only on
	// this machine.
	PlainCookies bool

	Logger     *slog.Logger
	Tracer     trace.Tracer
	Propagator propagation.TextMapPropagator

	// BasePath is the path under which a proxy publishes the server, such as /fencepost; "" is
	// the root.
	BasePath string

	// TrustedProxyHops is how many proxies each request passed, which appended the address
	// that they saw to X-Forwarded-For; 0 ignores the header.
	TrustedProxyHops int

	// MaxAnswers is how many bytes of large answers may be on their way at once; 0 is
	// 64 MiB. Of one tenant it is a quarter.
	MaxAnswers int

	// AnswerTimeout is for how long a client may take to receive an answer; 0 is 15 s.
	// A client that takes longer is cut off.
	AnswerTimeout time.Duration

	// Heartbeat is the time between two signs of life in a stream of events; 0 is 15 s.
	Heartbeat time.Duration
}

// Router answers requests to all routes.
type Router struct {
	engine    *gin.Engine
	endpoints *endpoints
}

// ServeHTTP implements http.Handler. Whatever can be got has a head too (RFC 9110,
// 9.1): net/http leaves the body of its answer out.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodHead {
		get := req.WithContext(context.WithValue(req.Context(), headKey{}, true))
		get.Method = http.MethodGet
		req = get
	}
	req = r.endpoints.withoutBase(req)
	out := r.endpoints.used.Get().(*answer)
	out.ResponseWriter, out.timeout = w, r.endpoints.AnswerTimeout
	out.unread = req.ContentLength != 0 && req.Body != http.NoBody
	r.engine.ServeHTTP(out, req)
	gone := out.gone
	*out = answer{}
	r.endpoints.used.Put(out)
	if gone {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
}

// Routes lists the routes.
func (r *Router) Routes() gin.RoutesInfo { return r.engine.Routes() }

// New returns the router.
func New(cfg Config) *Router {
	r := newEngine()
	a := newEndpoints(cfg)
	r.NoRoute(a.handle(route{handler: nowhere}))
	r.NoMethod(a.handle(route{handler: noSuchMethod}))
	a.add(
		r, vitalRoutes(), documentRoutes(), lockRoutes(), webhookRoutes(), adminRoutes(),
		dashboardRoutes(),
	)
	if a.Exposition != nil {
		a.add(r, metricsRoutes())
	}
	return &Router{r, a}
}

// endpoints has the handlers as its methods.
type endpoints struct {
	Config
	buffers sync.Pool // of *bytes.Buffer, for answers
	used    sync.Pool // of *answer; as gin's contexts, nothing refers to one after its request
	answers *shares   // bytes of large ones that are on their way
	gate    *gate
	slots   *gate // of requests that change entries
	pages   *pages
	scrapes *shares
	exports *shares
	reads   *shares // pages that are read from the store

	anonymous *gate   // requests that are not authenticated, or over a rate
	heads     *shares // bytes of such requests that wait

	sampler *sampler
}

func newEndpoints(cfg Config) *endpoints {
	if cfg.AnswerTimeout == 0 {
		cfg.AnswerTimeout = defaultAnswerTimeout
	}
	if cfg.MaxAnswers == 0 {
		cfg.MaxAnswers = maxAnswers
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = heartbeat
	}
	g := newGate(gateSlots())
	return &endpoints{
		Config: cfg, gate: g, slots: newSlots(), pages: newPages(g),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
		used:    sync.Pool{New: func() any { return new(answer) }},
		answers: newShares(cfg.MaxAnswers, cfg.MaxAnswers/answerShares),
		scrapes: newShares(maxScrapes, maxScrapes), exports: newShares(maxExports, maxExportsOfTenant),
		reads: newShares(maxReads, maxReadsOfTenant), anonymous: newPace(),
		heads: newShares(maxHeads, maxHeadsOfAddress), sampler: newSampler(),
	}
}

// NewOperations returns the router of an address for operations alone: health, readiness and
// metrics. It needs no more of cfg than these do.
func NewOperations(cfg Config) *Router {
	r := newEngine()
	a := newEndpoints(cfg)
	r.NoRoute(a.handle(route{handler: nothingHere}))
	r.NoMethod(a.handle(route{handler: noSuchMethod}))
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
