package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// ObserveStoreSize names the source of how full the store inside the process is, in bytes, on the
// terms of [Metrics.ObserveQueues]. Without a source the figures are left out: a cluster tells its
// own.
func (m *Metrics) ObserveStoreSize(read func() (used, quota int64)) { m.storeSize.Store(&read) }

func (m *Metrics) makeStoreSize(meter metric.Meter) error {
	used, err := meter.Int64ObservableGauge("fencepost.store.used", metric.WithUnit("By"),
		metric.WithDescription("What is in use of the embedded store's file."))
	if err != nil {
		return err
	}
	most, err := meter.Int64ObservableGauge("fencepost.store.quota", metric.WithUnit("By"),
		metric.WithDescription("What the embedded store's file may have."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if read := m.storeSize.Load(); read != nil {
			now, quota := (*read)()
			o.ObserveInt64(used, now)
			o.ObserveInt64(most, quota)
		}
		return nil
	}, used, most)
	return err
}
