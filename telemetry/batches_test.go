package telemetry_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fencepost/fencepost/telemetry"
)

// TestBatchSpans: a batch has a span of its own, which leads to the requests in it, to 128 at
// most.
func TestBatchSpans(t *testing.T) {
	if telemetry.BatchSpans(noop.NewTracerProvider().Tracer("")) != nil {
		t.Error("there are spans although nobody traces")
	}
	recorder := tracetest.NewSpanRecorder()
	begin := telemetry.BatchSpans(
		sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test"),
	)
	request := func(n byte) trace.SpanContext {
		return trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{n}, SpanID: trace.SpanID{n}, TraceFlags: trace.FlagsSampled,
		})
	}
	begin([]trace.SpanContext{request(1), request(2)})()
	begin(make([]trace.SpanContext, 500))()
	spans := recorder.Ended()
	if len(spans) != 2 || spans[0].Parent().IsValid() || len(spans[0].Links()) != 2 ||
		spans[0].Links()[1].SpanContext.TraceID() != request(2).TraceID() {
		t.Fatalf("the spans are %+v", spans)
	}
	if n := spans[1].Attributes()[0].Value.AsInt64(); n != 500 || len(spans[1].Links()) > 128 {
		t.Errorf("a large one says %d requests, and leads to %d", n, len(spans[1].Links()))
	}
}
