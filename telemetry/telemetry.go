package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope names this project as the source of its spans and metrics.
const scope = "github.com/fencepost/fencepost"

// Config says what to set up. The zero value of a field is its default.
type Config struct {
	ServiceVersion string // empty: "dev"

	LogWriter io.Writer    // nil: nothing is logged
	LogFormat string       // "json" (default) or "text"
	LogLevel  slog.Leveler // nil: info
}

// Telemetry is a running set-up. Its owner calls [Telemetry.Shutdown] after
// everything that logs, measures or traces has ended.
type Telemetry struct {
	logger   *slog.Logger
	lines    *LineWriter
	tracer   trace.Tracer
	metrics  *Metrics
	registry *prometheus.Registry

	// stop ends the providers, in order; each sends what it still holds.
	stop []func(context.Context) error
}

// Setup starts logging, metrics and, if the environment asks for it, tracing and
// the push of metrics. Nothing is dialled before it returns: a collector that
// cannot be reached shows in the log, never as an error here. An error means a
// setting that makes no sense.
func Setup(ctx context.Context, c Config) (*Telemetry, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Telemetry{
		lines: NewLineWriter(c.LogWriter, lostLines(c.LogFormat)), registry: prometheus.NewRegistry(),
	}
	t.logger = NewLogger(t.lines, c.LogFormat, c.LogLevel)
	t.receiveSDKErrors()
	if err := t.start(ctx, c.ServiceVersion); err != nil {
		return nil, errors.Join(fmt.Errorf("set up telemetry: %w", err), t.Shutdown(ctx))
	}
	return t, nil
}

func (c Config) withDefaults() (Config, error) {
	if c.ServiceVersion == "" {
		c.ServiceVersion = "dev"
	}
	if c.LogWriter == nil {
		c.LogWriter = io.Discard
	}
	if c.LogFormat == "" {
		c.LogFormat = FormatJSON
	}
	if c.LogFormat != FormatJSON && c.LogFormat != FormatText {
		return c, fmt.Errorf("log format %q is neither %q nor %q", c.LogFormat, FormatJSON, FormatText)
	}
	if c.LogLevel == nil {
		c.LogLevel = slog.LevelInfo
	}
	return c, nil
}

// start builds the providers. Whatever it has built when it fails is in t.stop.
func (t *Telemetry) start(ctx context.Context, version string) error {
	res, err := describe(ctx, version)
	if err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if t.tracer, err = t.startTracing(ctx, res); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	meters, err := t.startMetrics(ctx, res)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if t.metrics, err = NewMetrics(meters.Meter(scope), version); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	t.metrics.observeLog(t.lines)
	return errors.Join(
		t.registry.Register(collectors.NewGoCollector()),
		t.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
}

// receiveSDKErrors leads the SDK's errors into the log. The SDK reports them only through this
// global.
func (t *Telemetry) receiveSDKErrors() {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		t.logger.Warn("telemetry", slog.String("error", err.Error()))
	}))
}

// Shutdown sends what is still held back, spans and metrics first and the log
// last, and ends every goroutine of the set-up. It gives up on collectors that
// do not answer when ctx ends. Lines logged later are still written, unbuffered.
// Lines that were lost are counted, and are no error.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	for _, stop := range t.stop {
		errs = append(errs, stop(ctx))
	}
	t.stop = nil
	_ = t.lines.Close() // lost lines are counted
	return errors.Join(errs...)
}

// Logger returns the process's log.
func (t *Telemetry) Logger() *slog.Logger { return t.logger }

// Tracer returns the source of all spans. It does nothing but pass on the span
// context that it is given without a setting for traces.
func (t *Telemetry) Tracer() trace.Tracer { return t.tracer }

// Metrics returns the figures of the service.
func (t *Telemetry) Metrics() *Metrics { return t.metrics }

// Propagator reads and writes traceparent, tracestate and baggage headers.
func (t *Telemetry) Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

// MetricsHandler answers with all figures in the format of Prometheus, or of
// OpenMetrics (with exemplars) if that is asked for.
func (t *Telemetry) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(t.logger.Handler(), slog.LevelError), EnableOpenMetrics: true,
	})
}
