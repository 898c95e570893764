package telemetry_test

import (
	"context"
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
