package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"runtime/debug"
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

// request is one request on its way to its answer, with what is known of it so far.
type request struct {
	*gin.Context
	arrived   *http.Request // as net/http has it: with a span, Request is a copy
	out       *answer       // what Writer writes to
	endpoints *endpoints
	id        string
	serverID  string          // by [request.ownID]
	principal *auth.Principal // nil until the caller is authenticated
	name      string          // of the lock in the path
	client    netip.Addr      // by [request.address]
	located   bool            // client is known
	waits     bool            // it may wait for a lock
	arriving  time.Duration   // for how long its body was read
	began     time.Time

	conn    transport
	walk    walk   // behind the gate of operations that walk many rows
	bytes   taking // of large answers
	counted bool   // against its tenant's rate of requests
	tagged  bool   // its answer has an ETag
	paced   bool   // by [request.pace]

	// For the headers of its answer, by [request.set].
	values   []string
	valuesIn [4]string

	line logLine
}

// logLine is what the log line of a request says.
type logLine struct {
	to       slog.Handler // with what is the same in all lines of its route
	attrs    []slog.Attr
	buffer   [12]slog.Attr // for those of an ordinary line
	cause    error
	refused  cause // if it was
	quiet    bool  // there is no line
	expected bool  // refused because the replica shuts down or is full, which is no fault
}

// handler answers a request, or returns why not. The error is answered for it.
type handler func(*request) error

// handle returns what answers the requests of a route: each has an id, a span, a line in the log,
// and runs if the policy admits it.
func (a *endpoints) handle(one route) gin.HandlerFunc {
	lines := a.linesOf(one)
	return func(c *gin.Context) {
		out := unwrapped(c.Writer).(*answer)
		r := &out.request
		r.Context, r.began, r.arrived, r.endpoints, r.line.to = c, time.Now(), c.Request, a, lines
		r.walk.gate, r.bytes.of = a.gate, a.answers
		r.out, r.id = out, acceptRequestID(c.Request.Header.Get("X-Request-Id"))
		r.values = r.valuesIn[:0]
		r.set("X-Request-Id", r.id)
		span := r.trace()
		defer span.End()
		a.Metrics.RequestStarted()
		defer r.leave()
		r.run(&one.policy, one.handler)
		r.record(span)
	}
}

// record reports the answer to the metrics, the span and the log.
func (r *request) record(span trace.Span) {
	status, took := r.Writer.Status(), time.Since(r.began)
	r.endpoints.Metrics.RequestDone(
		r.context(), r.Request.Method, r.FullPath(), status, r.waits, took-r.arriving,
	)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.route", r.FullPath()), attribute.Int("http.response.status_code", status),
		)
	}
	r.log(status, took)
}

// run answers the request.
func (r *request) run(p *policy, h handler) {
	defer r.recovered()
	err := r.check()
	if err == nil && p.scopes != nil {
		err = admission{r, p}.admit()
	}
	if r.principal == nil || errors.Is(err, lock.RateLimited) {
		err = cmp.Or(r.pace(), err)
	}
	if err == nil {
		err = h(r)
	}
	if err != nil {
		r.fail(err)
	}
}

// check returns why no operation may have the request.
func (r *request) check() error {
	if err := checkHeaders(r.Request.Header); err != nil {
		return err
	}
	if !r.conn.enter(r.Request) {
		return errOverloaded("requests")
	}
	return checkSlashes(r.Request)
}

// recovered answers a panic as an internal error, whose stack goes to the log.
func (r *request) recovered() {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	r.note(slog.String("stack", string(debug.Stack())))
	r.fail(fmt.Errorf("panic: %v", p))
}

// context ends when the client goes away.
func (r *request) context() context.Context { return r.Request.Context() }

// endless is how long a request lasts that only its client ends.
const endless = time.Duration(math.MaxInt64)

// lasts marks a request that goes on for as long as its client wants, or atMost. Until stop is
// called, its context ends when the caller's credential expires or is withdrawn.
func (r *request) lasts(atMost time.Duration) (stop func()) {
	r.waits = true
	ctx, stop := r.principal.While(r.context(), atMost)
	if ctx != r.context() {
		r.Request = r.Request.WithContext(ctx)
	}
	return stop
}

// ended reports whether the request's context has ended, or will because its connection is closed.
func (r *request) ended() bool {
	return r.context().Err() != nil || r.conn.over != nil && r.conn.over.open.Err() != nil
}

// whyGone says why the request's context has ended.
func (r *request) whyGone() string {
	return cmp.Or(whyOver(context.Cause(r.context())), clientGone)
}

// whyOver says to a client that its credential does not count any more; "" is for another reason.
func whyOver(cause error) string {
	switch {
	case errors.Is(cause, auth.Withdrawn):
		return isWithdrawn
	case errors.Is(cause, auth.Expired):
		return tokenExpired
	}
	return ""
}

// tenant is "" until it is known.
func (r *request) tenant() string {
	if r.principal == nil {
		return ""
	}
	return r.principal.Tenant
}

// set sets a header of the answer. It allocates nothing for the first few. The key is canonical.
func (r *request) set(key, value string) {
	r.values = append(r.values, value)
	n := len(r.values)
	r.Writer.Header()[key] = r.values[n-1 : n : n]
}

func (r *request) note(attrs ...slog.Attr) { r.line.attrs = append(r.line.attrs, attrs...) }

// trace starts the request's span below the caller's, if it sent one.
func (r *request) trace() trace.Span {
	tracer, was := r.endpoints.Tracer, r.context()
	if _, off := tracer.(noop.Tracer); off && r.Request.Header["Traceparent"] == nil {
		return noop.Span{}
	}
	ctx := r.endpoints.Propagator.Extract(was, propagation.HeaderCarrier(r.Request.Header))
	ctx, span := tracer.Start(
		ctx, r.Request.Method+" "+r.FullPath(), trace.WithSpanKind(trace.SpanKindServer),
	)
	if span.SpanContext().IsValid() { // otherwise tracing is off: save the request a copy
		r.Request = r.Request.WithContext(ctx)
	}
	return span
}

// linesOf is the log of a route: its handler formats what is the same in all lines once.
func (a *endpoints) linesOf(one route) slog.Handler {
	if one.path == "" {
		return a.Logger.Handler()
	}
	return a.Logger.Handler().WithAttrs([]slog.Attr{
		slog.String("method", one.method), slog.String("route", one.path),
	})
}

func (r *request) log(status int, took time.Duration) {
	ctx := r.context()
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError && !r.line.expected {
		level = slog.LevelError
	}
	if !r.line.to.Enabled(ctx, level) || r.line.quiet || r.silenced(status) {
		return
	}
	attrs := append(r.line.buffer[:0],
		slog.String("request_id", r.id),
		slog.String("client", textOfAddress(r.address())),
		slog.Int("status", status),
		slog.Int64("duration_us", took.Microseconds()),
	)
	if r.FullPath() == "" {
		attrs = append(attrs, slog.String("method", r.Request.Method), slog.String("route", ""))
	}
	if r.principal != nil {
		attrs = append(
			attrs, slog.String("tenant", r.principal.Tenant), slog.String("subject", r.principal.Subject),
		)
	}
	if r.name != "" {
		attrs = append(attrs, slog.String("lock", r.name))
	}
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		attrs = append(attrs, slog.String("trace_id", sc.TraceID().String()))
	}
	attrs = append(attrs, r.line.attrs...)
	if r.line.cause != nil {
		attrs = append(attrs, slog.String("error", r.line.cause.Error()))
	}
	line := slog.NewRecord(r.began.Add(took), level, "request", 0)
	line.AddAttrs(slog.Attr{Value: slog.GroupValue(attrs...)}) // inline; a record has space for five
	_ = r.line.to.Handle(ctx, line)                            // there is nothing to report it to
}

// checkSlashes refuses a path with an encoded slash that net/url has decoded: it gives
// up the path as it was sent if anything in it should have been escaped and is
// not, and the slash would separate segments.
func checkSlashes(r *http.Request) error {
	sent, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.Contains(sent, "%") {
		return nil
	}
	slash := func(path string) bool { return strings.Contains(strings.ToLower(path), "%2f") }
	if slash(sent) && !slash(r.URL.EscapedPath()) {
		return errInvalidName()
	}
	return nil
}
