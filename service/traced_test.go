package service_test

import (
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store/etcd"
)

// A traced request has spans in the service and, below them, in the store.
func TestSpans(t *testing.T) {
	t.Parallel()
	conn, err := etcd.StartEmbedded(t.Context(), etcd.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	store, err := etcd.Open(t.Context(), conn, etcd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	s := service.New(
		service.Config{Store: store, TokenKey: store.TokenKey(), MinTTL: etcd.MinTTL, Tracer: tracer},
	)
	defer s.Close()

	g, err := s.Acquire(t.Context(), service.AcquireRequest{
		Tenant: "acme", Holder: "worker", TTL: 10 * time.Second,
		Claims: []lock.Claim{{Name: "orders:42", Mode: lock.Exclusive}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Entries.Release(
		t.Context(), service.TokenRequest{Tenant: "acme", Name: "orders:42", Token: g.Token},
	); err != nil {
		t.Fatal(err)
	}
	parents := map[string]string{}
	ended := spans.Ended()
	for _, child := range ended {
		i := slices.IndexFunc(ended, func(p sdktrace.ReadOnlySpan) bool {
			return p.SpanContext().SpanID() == child.Parent().SpanID()
		})
		if i >= 0 {
			parents[child.Name()] = ended[i].Name()
		}
	}
	if parents["store.Enqueue"] != "service.Acquire" || parents["store.Remove"] != "service.Release" {
		t.Errorf("spans and their parents: %v", parents)
	}
}
