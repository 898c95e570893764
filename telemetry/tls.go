package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Secured is how the TLS of the server is.
type Secured struct {
	Expires time.Time // of the certificate in use
	Refused bool      // what the files of certificates have now is not in use, because it cannot be
}

// The files of who may what, in fencepost_principals_refused.
const (
	FilePrincipals     = "principals"      // for whom client certificates stand
	FileOIDCPrincipals = "oidc_principals" // what operators may by the identity provider's claims
)

// ObservePrincipals names the source of which of the files that the server reads anew, of those
// above, has something that cannot be used, on the terms of [Metrics.ObserveQueues]. A file that it
// does not read is left out.
func (m *Metrics) ObservePrincipals(read func() (refused map[string]bool)) { m.principals.Store(&read) }

func (m *Metrics) makePrincipals(meter metric.Meter) error {
	files := map[string]metric.MeasurementOption{}
	for _, file := range []string{FilePrincipals, FileOIDCPrincipals} {
		files[file] = metric.WithAttributeSet(attribute.NewSet(attribute.String("file", file)))
	}
	_, err := meter.Int64ObservableGauge("fencepost.principals.refused",
		metric.WithDescription("1 while what a file of principals has cannot be used, and the server goes on with what it had before."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			read := m.principals.Load()
			if read == nil {
				return nil
			}
			for file, refused := range (*read)() {
				if attributes, known := files[file]; known {
					o.Observe(bit(refused), attributes)
				}
			}
			return nil
		}))
	return err
}

// bit is 1 for what is so.
func bit(so bool) int64 {
	if so {
		return 1
	}
	return 0
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
		metric.WithDescription("1 while what a file of certificates has cannot be used, and the server goes on with what it had before."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		read := m.secured.Load()
		if read == nil {
			return nil
		}
		now := (*read)()
		o.ObserveInt64(expires, now.Expires.Unix())
		o.ObserveInt64(refused, bit(now.Refused))
		return nil
	}, expires, refused)
	return err
}
