package telemetry_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/fencepost/fencepost/telemetry"
)

// The hot path: what one acquire records.
func measureAcquire(ctx context.Context, m *telemetry.Metrics) {
	m.RequestStarted()
	m.StoreOperation(ctx, "txn", telemetry.OutcomeOK, 400*time.Microsecond)
	m.Batched(ctx, 4)
	m.Waited(ctx, telemetry.WaitGranted, false, 500*time.Microsecond)
	m.Acquired(ctx, telemetry.WaitGranted, 1)
	m.RequestDone(ctx, "POST", "/locks/:name", 201, false, 600*time.Microsecond)
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	unsetStandard(t)
	m, ctx := setup(t, telemetry.Config{}).Metrics(), t.Context()
	everything := func() {
		measureAcquire(ctx, m)
		m.Held(ctx, "exclusive", telemetry.HoldReleased, time.Second)
		m.HandedOver(ctx, time.Millisecond)
		m.RenewedWith(ctx, .5)
		m.Revoked(ctx, telemetry.ActorAdmin)
		m.Renewed(ctx, telemetry.OutcomeOK)
		m.FeedRestarted(ctx)
	}
	if n := testing.AllocsPerRun(1000, everything); n != 0 {
		t.Errorf("measuring allocates %v times", n)
	}
}

func BenchmarkAcquire(b *testing.B) {
	tel, err := telemetry.Setup(b.Context(), telemetry.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(context.Background()) }()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			measureAcquire(b.Context(), tel.Metrics())
		}
	})
}

func BenchmarkLogLine(b *testing.B) {
	w := telemetry.NewLineWriter(io.Discard, nil)
	defer w.Close()
	logger := telemetry.NewLogger(w, telemetry.FormatJSON, slog.LevelInfo)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			logger.LogAttrs(b.Context(), slog.LevelInfo, "request",
				slog.String("request_id", "01JD3K5Y7Z"), slog.String("tenant", "acme"), slog.String("lock", "orders:42"),
				slog.String("method", "POST"), slog.Int("status", 201), slog.Duration("took", time.Millisecond))
		}
	})
}
