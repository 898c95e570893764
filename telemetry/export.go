package telemetry

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// describe says what this process is, for the receiver of its telemetry.
// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES overrule it.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithService(),
		resource.WithAttributes(
			attribute.String("service.name", "fencepost"), attribute.String("service.version", version),
		),
		resource.WithFromEnv(),
	)
}

// startTracing returns a tracer that exports, or one that does nothing.
// The sampler and the batching follow OTEL_TRACES_SAMPLER and OTEL_BSP_*.
func (t *Telemetry) startTracing(
	ctx context.Context, res *resource.Resource,
) (trace.Tracer, error) {
	if !sendingAsked("TRACES") {
		return noop.NewTracerProvider().Tracer(scope), nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	t.stop = append(t.stop, provider.Shutdown)
	return provider.Tracer(scope), nil
}

// startMetrics returns a provider that is read by Prometheus and, if asked for,
// also pushes.
func (t *Telemetry) startMetrics(
	ctx context.Context, res *resource.Resource,
) (*metric.MeterProvider, error) {
	reader, err := prometheus.New(prometheus.WithRegisterer(t.registry), prometheus.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	options := []metric.Option{metric.WithResource(res), metric.WithReader(reader)}
	if sendingAsked("METRICS") {
		push, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return nil, err
		}
		options = append(options, metric.WithReader(push))
	}
	provider := metric.NewMeterProvider(options...)
	t.stop = append(t.stop, provider.Shutdown)
	return provider, nil
}

// sendingAsked reports whether the environment asks to send a signal ("TRACES",
// "METRICS") to somewhere. Without these variables autoexport would send
// to localhost, which is wrong for operators that did not ask for it.
func sendingAsked(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch os.Getenv("OTEL_" + signal + "_EXPORTER") {
	case "none":
		return false
	case "prometheus": // that is MetricsHandler; autoexport would open a port of its own
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
			os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	}
	return true
}
