package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// ObserveMemory names the source of whether there is no memory for new work, on the terms of
// [Metrics.ObserveQueues].
func (m *Metrics) ObserveMemory(full func() bool) { m.full.Store(&full) }

func (m *Metrics) makeMemory(meter metric.Meter) error {
	_, err := meter.Int64ObservableGauge("fencepost.memory.full",
		metric.WithDescription("1 while there is no memory for new work, which is refused with 503."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if full := m.full.Load(); full != nil {
				o.Observe(bit((*full)()))
			}
			return nil
		}))
	return err
}
