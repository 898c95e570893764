package service_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/bubble"
)

// TestTraces: every use case and every call of it to the store has a span, with
// the lock in it and nothing secret.
func TestTraces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
		s := newSharedStore(t)
		r := s.replica(t, func(c *service.Config) { c.Tracer = provider.Tracer("test") })
		g := r.hold(want("orders:1", 0))
		r.start(want("orders:1", 0)).fails(lock.Held)
		r.renew(g)
		_, looked := r.Entry(t.Context(), by(g), 0)
		_, listed := r.List(
			t.Context(),
			service.ListRequest{ListRequest: view.ListRequest{Tenant: "acme", Limit: 1}, Consistent: true},
		)
		r.release(g)
		_, lost := r.Renew(t.Context(), by(g))
		_, seen := r.Lock(t.Context(), ref("orders:1"), false, nil)
		if err := errors.Join(looked, listed, seen); err != nil || lost == nil {
			t.Fatal(err, lost)
		}
		r.store.setFeed(frozen)
		s.occupy(t, "another")
		r.start(want("orders:2", time.Second)).holdsLater()

		names := map[[16]byte][]string{}
		for _, span := range recorder.Ended() {
			id := span.SpanContext().TraceID()
			names[id] = append(names[id], span.Name())
			for _, a := range span.Attributes() {
				if strings.Contains(a.Value.String(), "fp1_") {
					t.Errorf("%s shows a token", span.Name())
				}
			}
		}
		var traces []string
		for _, spans := range names {
			slices.Sort(spans)
			traces = append(traces, strings.Join(spans, " "))
		}
		slices.Sort(traces)
		expected := []string{
			"service.Acquire store.Enqueue",
			"service.Acquire store.Enqueue",
			"service.Acquire store.Newest store.Remaining",
			"service.Entry store.Remaining",
			"service.List store.Newest",
			"service.Lock",
			"service.Release store.Remove",
			"service.Renew",
			"service.Renew store.Renew",
			"store.Queue", // shared by all who wait for the lock
		}
		if diff := cmp.Diff(expected, traces); diff != "" {
			t.Errorf("traces (-want +got):\n%s", diff)
		}
	})
}

// TestLinks: the span of a request that waited leads to the request whose entry it waited
// for, and to the release that ended that; or, if another replica had the release, to the
// request again.
func TestLinks(t *testing.T) {
	for name, here := range map[string]bool{"released here": true, "released elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				recorder := tracetest.NewSpanRecorder()
				provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
				s := newSharedStore(t)
				traced := func(c *service.Config) { c.Tracer = provider.Tracer("test") }
				other, r := s.replica(t, traced), s.replica(t, traced)
				g := other.hold(want("orders:1", 0))
				waits := r.start(want("orders:1", time.Minute))
				waits.waits()
				if here {
					r.release(g)
				} else {
					other.release(g)
				}
				waits.holds()
				spans := map[string][]trace.ReadOnlySpan{}
				for _, span := range recorder.Ended() {
					spans[span.Name()] = append(spans[span.Name()], span)
				}
				acquires, release := spans["service.Acquire"], spans["service.Release"][0]
				first, second := acquires[0], acquires[1]
				freed := first.SpanContext()
				if here {
					freed = release.SpanContext()
				}
				want := map[string][16]byte{
					"blocked_by": first.SpanContext().TraceID(), "freed_by": freed.TraceID(),
				}
				got := map[string][16]byte{}
				for _, l := range second.Links() {
					got[l.Attributes[0].Value.AsString()] = l.SpanContext.TraceID()
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("links (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestTraceOfTheRequest: an entry says which request made it. What is no traceparent is
// not kept, and a retry, which is another request, is the same entry.
func TestTraceOfTheRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newSharedStore(t)
		r := s.replica(t)
		const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		traced, retry, odd := keyed("orders:1", 0, "k"), keyed("orders:1", 0, "k"), want("orders:2", 0)
		traced.Trace, retry.Trace, odd.Trace = parent, strings.Replace(
			parent, "4bf9", "ffff", 1,
		), parent+"-more"
		first := r.hold(traced)
		same(t, first, r.hold(retry))
		r.hold(odd)
		if all := s.Entries(); len(all) != 2 || all[0].Trace != parent || all[1].Trace != "" {
			t.Errorf("the store has %q and %q", all[0].Trace, all[1].Trace)
		}
	})
}
