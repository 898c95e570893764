package service

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store"
)

// Traced wraps a store so that each call of a request has a span. The feed has none, because it
// belongs to no request.
func Traced(s store.Store, t trace.Tracer) store.Store { return &traced{Store: s, tracer: t} }

type traced struct {
	store.Store
	tracer trace.Tracer
}

// Enqueue implements [store.Store].
func (t *traced) Enqueue(
	ctx context.Context, e *lock.Entry,
) (placed *lock.Entry, written bool, err error) {
	err = t.span(ctx, "store.Enqueue", e, func(ctx context.Context) error {
		placed, written, err = t.Store.Enqueue(ctx, e)
		return err
	})
	return placed, written, err
}

// Remove implements [store.Store].
func (t *traced) Remove(
	ctx context.Context, e *lock.Entry, why lock.Reason, while ...*lock.Entry,
) error {
	return t.span(
		ctx, "store.Remove", e,
		func(ctx context.Context) error { return t.Store.Remove(ctx, e, why, while...) },
	)
}

// Narrow implements [store.Store].
func (t *traced) Narrow(
	ctx context.Context, e *lock.Entry, kept []lock.Claim,
) (now *lock.Entry, err error) {
	err = t.span(ctx, "store.Narrow", e, func(ctx context.Context) error {
		now, err = t.Store.Narrow(ctx, e, kept)
		return err
	})
	return now, err
}

// RemoveAndPut implements [store.Store].
func (t *traced) RemoveAndPut(
	ctx context.Context, e *lock.Entry, why lock.Reason, note *lock.Note, p store.RecordPut,
) error {
	return t.span(
		ctx, "store.RemoveAndPut", e,
		func(ctx context.Context) error { return t.Store.RemoveAndPut(ctx, e, why, note, p) },
	)
}

// Renew implements [store.Store].
func (t *traced) Renew(ctx context.Context, e *lock.Entry) error {
	return t.span(
		ctx, "store.Renew", e, func(ctx context.Context) error { return t.Store.Renew(ctx, e) },
	)
}

// Remaining implements [store.Store].
func (t *traced) Remaining(ctx context.Context, e *lock.Entry) (left time.Duration, err error) {
	err = t.span(ctx, "store.Remaining", e, func(ctx context.Context) error {
		left, err = t.Store.Remaining(ctx, e)
		return err
	})
	return left, err
}

// Newest implements [store.Store].
func (t *traced) Newest(ctx context.Context) (number uint64, err error) {
	err = t.span(ctx, "store.Newest", nil, func(ctx context.Context) error {
		number, err = t.Store.Newest(ctx)
		return err
	})
	return number, err
}

// Queue implements [store.Store].
func (t *traced) Queue(
	ctx context.Context, r lock.Ref,
) (entries []*lock.Entry, number uint64, err error) {
	err = t.span(ctx, "store.Queue", nil, func(ctx context.Context) error {
		entries, number, err = t.Store.Queue(ctx, r)
		return err
	})
	return entries, number, err
}

// span runs call in a span. Traces may name locks, unlike metrics; no secret is
// part of an entry.
func (t *traced) span(
	ctx context.Context, name string, e *lock.Entry, call func(context.Context) error,
) error {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if e != nil {
		span.SetAttributes(
			attribute.String("fencepost.tenant", e.Tenant), attribute.String("fencepost.lock", e.Name()),
			attribute.String("fencepost.entry", string(e.ID)),
		)
	}
	err := call(ctx)
	if err != nil {
		span.RecordError(err)
	}
	return err
}
