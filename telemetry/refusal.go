package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Why nothing is granted, in fencepost_grants_refused.
const (
	RefusedLostPast     = "lost_past"
	RefusedNewerVersion = "newer_version"
)

// ObserveRefusal names the source of why nothing is granted, one of the reasons above or "",
// on the terms of [Metrics.ObserveQueues].
func (m *Metrics) ObserveRefusal(read func() (reason string)) { m.refusal.Store(&read) }

func (m *Metrics) makeRefusal(meter metric.Meter) error {
	reasons := map[string]metric.MeasurementOption{}
	for _, reason := range []string{RefusedLostPast, RefusedNewerVersion} {
		reasons[reason] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", reason)))
	}
	_, err := meter.Int64ObservableGauge("fencepost.grants.refused",
		metric.WithDescription("1 while nothing is granted for this reason."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if read := m.refusal.Load(); read != nil {
				now := (*read)()
				for reason, attributes := range reasons { // a 0 for the others: an alert wants to see it end
					o.Observe(bit(reason == now), attributes)
				}
			}
			return nil
		}))
	return err
}
