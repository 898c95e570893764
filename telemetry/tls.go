package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Secured is how the TLS of the server is.
type Secured struct {
	Expires time.Time // of the certificate in use
	Refused bool      // what its files have now is not in use, because it cannot be
}

// ObserveTLS names the source of the figures of TLS, on the terms of
// [Metrics.ObserveQueues]. Without a source they are left out.
func (m *Metrics) ObserveTLS(read func() Secured) { m.secured.Store(&read) }

func (m *Metrics) makeTLS(meter metric.Meter) error {
	expires, err := meter.Int64ObservableGauge("fencepost.tls.certificate.expiry", metric.WithUnit("s"),
		metric.WithDescription("When the certificate that clients see ends, in seconds since 1970."))
	if err != nil {
		return err
	}
	refused, err := meter.Int64ObservableGauge("fencepost.tls.files.refused",
		metric.WithDescription("1 while what a file of TLS has cannot be used, and the server goes on with what it had before."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		read := m.secured.Load()
		if read == nil {
			return nil
		}
		now, bit := (*read)(), int64(0)
		if now.Refused {
			bit = 1
		}
		o.ObserveInt64(expires, now.Expires.Unix())
		o.ObserveInt64(refused, bit)
		return nil
	}, expires, refused)
	return err
}
