package service

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
)

// maxLinks bounds the links from a waiting request's span to the requests that blocked it.
const maxLinks = 8

// Relations of a linked span to the span with the link.
const (
	linkRelation = "fencepost.relation"
	linkEntry    = "fencepost.entry"
	blockedBy    = "blocked_by" // its entry holds, and this request waits for it
	freedBy      = "freed_by"   // it ended the hold or the wait that blocked this request
)

// linkBlocker links the waiting request's span to the request whose entry blocks it first. It
// adds a link whenever that entry changes.
func (w *wait) linkBlocker(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() || w.links >= maxLinks {
		return
	}
	blockers, _ := w.s.view.Queues.Blockers(w.entry)
	if len(blockers) == 0 || blockers[0].ID == w.blocker || w.entry.Choosing() {
		return
	}
	w.blocker = blockers[0].ID
	w.links++
	link(span, traceOf(blockers[0]), blockedBy, w.blocker)
}

// linkFreed links the span to the request that made the grant possible. That is the release, if
// this replica served it, or else the request that made the removed entry.
func (w *wait) linkFreed(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	before := w.s.view.Waits.FreedBy(w.entry.ID)
	if before == nil {
		return
	}
	to, ok := w.s.Entries.ending.of(before.ID)
	if !ok {
		to = traceOf(before)
	}
	link(span, to, freedBy, before.ID)
}

// link adds a link, unless the other request was not traced.
func link(span trace.Span, to trace.SpanContext, relation string, id lock.ID) {
	if to.IsValid() {
		span.AddLink(trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{
			attribute.String(linkRelation, relation), attribute.String(linkEntry, string(id)),
		}})
	}
}

const traceparent = "traceparent"

// traceOf returns the span of the request that made the entry, if known.
func traceOf(e *lock.Entry) trace.SpanContext {
	if e.Trace == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(
		context.Background(), propagation.MapCarrier{traceparent: e.Trace},
	)
	return trace.SpanContextFromContext(ctx)
}

// ownTrace returns the traceparent that an entry keeps: the span of this request, so that others
// can link to it. If no span is recorded, it is what the client sent.
func ownTrace(span trace.Span, sent string) string {
	if !span.IsRecording() {
		return sent
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	return carrier[traceparent]
}

// maxEndings bounds the ended entries for which a replica knows the request that ended them.
const maxEndings = 1024

// endings are the spans of the latest requests that ended entries.
type endings struct {
	mu    sync.Mutex
	spans map[lock.ID]trace.SpanContext
	order []lock.ID // a ring buffer of the keys, once it is full
	next  int
}

// note is called before the removal, because the next holder asks at once.
func (r *endings) note(span trace.Span, id lock.ID) {
	if !span.IsRecording() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spans == nil {
		r.spans = map[lock.ID]trace.SpanContext{}
	}
	if _, known := r.spans[id]; !known {
		r.remember(id)
	}
	r.spans[id] = span.SpanContext()
}

// remember stores the id, and replaces the oldest when full.
func (r *endings) remember(id lock.ID) {
	if len(r.order) < maxEndings {
		r.order = append(r.order, id)
		return
	}
	delete(r.spans, r.order[r.next])
	r.order[r.next] = id
	r.next = (r.next + 1) % maxEndings
}

func (r *endings) of(id lock.ID) (trace.SpanContext, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	span, ok := r.spans[id]
	return span, ok
}
