package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
)

// record is what the layers learn about a request, for its log line.
type record struct {
	endpoints *endpoints
	id        string
	taken     int // of what [answers] count
	principal *auth.Principal
	name      string // of the lock
	waits     bool   // the request may wait for a lock
	attrs     []slog.Attr
	cause     error
	draining  bool // refused because the replica shuts down, which is no fault

	connection *connection // that the request occupies, or nil
	crowded    bool        // it occupies none, because its tenant has too many
}

// tenant is "" until it is known.
func (r *record) tenant() string {
	if r.principal == nil {
		return ""
	}
	return r.principal.Tenant
}

const recordKey = "record"

func recordOf(c *gin.Context) *record {
	if r, ok := c.Get(recordKey); ok {
		return r.(*record)
	}
	return &record{}
}

func requestID(c *gin.Context) string { return recordOf(c).id }

func note(c *gin.Context, attrs ...slog.Attr) {
	r := recordOf(c)
	r.attrs = append(r.attrs, attrs...)
}

func noteCause(c *gin.Context, err error) { recordOf(c).cause = err }

// observe gives the request an id and a span, counts it and writes its log line.
func (a *endpoints) observe(c *gin.Context) {
	began := time.Now()
	r := &record{endpoints: a, id: acceptRequestID(c.Request.Header.Get("X-Request-Id"))}
	c.Set(recordKey, r)
	c.Header("X-Request-Id", r.id)
	ctx, span := a.trace(c)
	defer span.End()
	a.Metrics.RequestStarted()
	defer a.give(r)
	defer r.leave()
	c.Next()
	status, took := c.Writer.Status(), time.Since(began)
	a.Metrics.RequestDone(ctx, c.Request.Method, c.FullPath(), status, r.waits, took)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("http.route", c.FullPath()), attribute.Int("http.response.status_code", status))
	}
	a.log(c, r, status, took)
}

// trace starts the request's span below the caller's, if it sent one.
func (a *endpoints) trace(c *gin.Context) (context.Context, trace.Span) {
	was := c.Request.Context()
	if _, off := a.Tracer.(noop.Tracer); off && c.Request.Header["Traceparent"] == nil {
		return was, noop.Span{}
	}
	ctx := a.Propagator.Extract(was, propagation.HeaderCarrier(c.Request.Header))
	ctx, span := a.Tracer.Start(ctx, c.Request.Method+" "+c.FullPath(), trace.WithSpanKind(trace.SpanKindServer))
	if !span.SpanContext().IsValid() {
		return was, span // nobody traces: save the request a copy
	}
	c.Request = c.Request.WithContext(ctx)
	return ctx, span
}

func (a *endpoints) log(c *gin.Context, r *record, status int, took time.Duration) {
	ctx := c.Request.Context()
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError && !r.draining {
		level = slog.LevelError
	}
	if !a.Logger.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 12+len(r.attrs)),
		slog.String("request_id", r.id),
		slog.String("client", clientAddress(c.Request, a.TrustedProxies)),
		slog.String("method", c.Request.Method),
		slog.String("route", c.FullPath()),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	)
	if r.principal != nil {
		attrs = append(attrs, slog.String("tenant", r.principal.Tenant), slog.String("subject", r.principal.Subject))
	}
	if r.name != "" {
		attrs = append(attrs, slog.String("lock", r.name))
	}
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		attrs = append(attrs, slog.String("trace_id", sc.TraceID().String()))
	}
	attrs = append(attrs, r.attrs...)
	if r.cause != nil {
		attrs = append(attrs, slog.String("error", r.cause.Error()))
	}
	a.Logger.LogAttrs(ctx, level, "request", attrs...)
}

// acceptRequestID takes a client's request id if it is harmless, and makes one
// otherwise.
func acceptRequestID(given string) string {
	const maxLength = 128
	harmless := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.ContainsRune("._-", c)
	}
	if given != "" && len(given) <= maxLength && strings.IndexFunc(given, func(c rune) bool { return !harmless(c) }) < 0 {
		return given
	}
	return fmt.Sprintf("%016x", rand.Uint64())
}

// recover answers a panic with an internal error and keeps its stack for the log.
func (a *endpoints) recover(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		note(c, slog.String("stack", string(debug.Stack())))
		fail(c, fmt.Errorf("panic: %v", p))
	}()
	c.Next()
}

// honest refuses a path with an encoded slash that net/url has decoded: it gives
// up the path as it was sent if anything in it should have been escaped and is
// not, and the slash would separate segments.
func (a *endpoints) honest(c *gin.Context) {
	sent, _, _ := strings.Cut(c.Request.RequestURI, "?")
	slash := func(path string) bool { return strings.Contains(strings.ToLower(path), "%2f") }
	if slash(sent) && !slash(c.Request.URL.EscapedPath()) {
		fail(c, errInvalidName())
	}
}

// require lets a request pass whose bearer token has one of the scopes.
func (a *endpoints) require(scopes ...auth.Scope) gin.HandlerFunc {
	return func(c *gin.Context) {
		p, err := a.authenticate(c)
		if err != nil {
			c.Header("WWW-Authenticate", `Bearer realm="fencepost"`)
			fail(c, err)
			return
		}
		recordOf(c).principal = p
		a.occupy(c)
		for _, s := range scopes {
			if p.Allows(s) {
				return
			}
		}
		fail(c, lock.Errorf(lock.Forbidden, "the bearer token lacks the scope %s", scopes[0]))
	}
}

// query refuses a request with other query parameters, or with one of them twice:
// a typo, or a field of the body in the wrong place, must not be passed over.
func query(known ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.URL.RawQuery == "" {
			return
		}
		values, err := url.ParseQuery(c.Request.URL.RawQuery)
		if err != nil {
			fail(c, lock.Errorf(lock.InvalidRequest, "the query is not of the form name=value&name=value"))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			switch {
			case !slices.Contains(known, name):
				fail(c, unknownParameter(name))
				return
			case len(values[name]) > 1:
				fail(c, lock.Invalid(name, "must not be there twice"))
				return
			}
		}
	}
}

// unknownParameter names the parameter if its name can be nothing but a name.
func unknownParameter(name string) error {
	const longest = 30
	if len(name) > longest || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_-") != "" {
		return lock.Errorf(lock.InvalidRequest, "a query parameter is not known here")
	}
	return lock.Invalid(name, "is not known here as a query parameter")
}

func (a *endpoints) authenticate(c *gin.Context) (*auth.Principal, error) {
	values := c.Request.Header["Authorization"]
	if len(values) != 1 {
		return nil, lock.Errorf(lock.Unauthenticated, "one Authorization header with a bearer token is needed")
	}
	scheme, raw, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, lock.Errorf(lock.Unauthenticated, "the Authorization header must be of the form Bearer <token>")
	}
	p, err := a.Verifier.Verify(c.Request.Context(), strings.TrimSpace(raw))
	var refused *auth.Error
	if errors.As(err, &refused) {
		note(c, slog.String("auth", string(refused.Reason)))
		if refused.KeyID != "" {
			note(c, slog.String("kid", refused.KeyID))
		}
		return nil, lock.Errorf(lock.Unauthenticated, "%s", refused.Detail)
	}
	return p, err
}

func principal(c *gin.Context) *auth.Principal { return recordOf(c).principal }

func errInvalidName() error {
	return lock.Errorf(lock.InvalidName,
		"a lock name is 1 to %d of the characters A-Z a-z 0-9 . _ : @ = + - and begins with a letter or a digit", lock.MaxNameLength)
}

// named reads the lock's name from the path and holds it against the bearer
// token's patterns.
func (a *endpoints) named(c *gin.Context) {
	name, err := url.PathUnescape(c.Param("name"))
	if err != nil || !lock.ValidName(name) {
		fail(c, errInvalidName())
		return
	}
	recordOf(c).name = name
	if !principal(c).MayUse(name) {
		fail(c, lock.Errorf(lock.Forbidden, "the bearer token is limited to other lock names"))
	}
}
