// Package telemetry sets up what an operator sees of a running server: traces
// and metrics by OpenTelemetry, and the log.
//
// [Setup] returns everything as values. No package of Fencepost reads
// OpenTelemetry's globals, so two servers can live in one process. The SDK's error handler is
// the one global that is set: only by it the SDK reports a failed export. It leads to the log.
//
// Spans cost nothing unless the standard OTEL_* variables ask for an exporter,
// and an incoming traceparent is passed on even then. The figures of [Metrics]
// are always there to be read by Prometheus, and are also pushed over OTLP if
// the environment asks for that. OTEL_SDK_DISABLED stops everything that would
// be sent out, not the figures that are read.
//
// No attribute of a metric is open-ended: never a lock name, a holder, a token,
// a tenant, a request id or a URL. docs/reference/metrics.md lists every name;
// a test compares it with what a server answers.
//
// What is not promised: log lines below the level warn are kept back for up to
// 50 ms, so a killed process can lose the last of them. An audit must not depend
// on the log.
package telemetry
