package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// maxBatchLinks is to how many requests the span of a batch leads at most, as the SDK has it.
const maxBatchLinks = 128

// BatchSpans returns a func that begins a span for one write to the store which several
// requests share, with a link to each of them, and returns what ends it. It belongs to the
// trace of none of them: the others would miss it. It is nil without tracing.
func BatchSpans(t trace.Tracer) func(requests []trace.SpanContext) (sent func()) {
	if _, off := t.(noop.Tracer); off {
		return nil
	}
	return func(requests []trace.SpanContext) func() {
		links := make([]trace.Link, 0, min(len(requests), maxBatchLinks))
		for _, r := range requests[:cap(links)] {
			links = append(links, trace.Link{SpanContext: r})
		}
		_, span := t.Start(context.Background(), "store.Batch", trace.WithSpanKind(
			trace.SpanKindClient,
		), trace.WithLinks(links...),
			trace.WithAttributes(attribute.Int("fencepost.batch.requests", len(requests))))
		return func() { span.End() }
	}
}
