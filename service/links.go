package service

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
)

// maxLinks is to how many requests that held it up the span of one that waits points.
const maxLinks = 8

// How a linked span has to do with the one that has the link.
const (
	linkRelation = "fencepost.relation"
	linkEntry    = "fencepost.entry"
	blockedBy    = "blocked_by" // its entry holds, and the request waits for it
	freedBy      = "freed_by"   // it ended the hold or the wait that was in the way
)

// linkBlocker has the span of a request that waits point to the request whose entry is
// first in its way, whenever that is another one.
func (w *wait) linkBlocker(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() || w.links >= maxLinks {
		return
	}
	blockers, _ := w.s.view.Blockers(w.entry)
	if len(blockers) == 0 || blockers[0].ID == w.blocker {
		return
	}
	w.blocker = blockers[0].ID
	w.links++
	link(span, traceOf(blockers[0]), blockedBy, w.blocker)
}

// linkFreed has it point to the request by which it came to hold: the release, if this
// replica had it, and else the request that made the entry which is gone.
func (w *wait) linkFreed(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	before := w.s.view.FreedBy(w.entry.ID)
	if before == nil {
		return
	}
	to, ok := w.s.ending.of(before.ID)
	if !ok {
		to = traceOf(before)
	}
	link(span, to, freedBy, before.ID)
}

// link adds a link, unless nobody traced what it would lead to.
func link(span trace.Span, to trace.SpanContext, relation string, id lock.ID) {
	if to.IsValid() {
		span.AddLink(trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{
			attribute.String(linkRelation, relation), attribute.String(linkEntry, string(id)),
		}})
	}
}

const traceparent = "traceparent"

// traceOf is the span of the request that made the entry, as far as it is known.
func traceOf(e *lock.Entry) trace.SpanContext {
	if e.Trace == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(
		context.Background(), propagation.MapCarrier{traceparent: e.Trace},
	)
	return trace.SpanContextFromContext(ctx)
}

// ownTrace is the traceparent that an entry keeps: the span of this request, so that others
// lead to it, or what the client sent if nobody records that.
func ownTrace(span trace.Span, sent string) string {
	if !span.IsRecording() {
		return sent
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	return carrier[traceparent]
}

// maxEndings is of how many entries a replica knows which request of its own ended them.
const maxEndings = 1024

// endings are the spans of the last requests that ended entries.
type endings struct {
	mu    sync.Mutex
	spans map[lock.ID]trace.SpanContext
	order []lock.ID // a ring of the keys, once there are enough
	next  int
}

// note is called before the entry is removed: who comes to hold by that asks at once.
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

// remember puts the id in the place of the oldest if there is no room.
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
