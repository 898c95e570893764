package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/certificate"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/telemetry"
)

// reloadEvery is how often the files of TLS are read: some pages of cached memory.
const reloadEvery = time.Second

// resolveTLS reads the certificate that clients see.
func (c *config) resolveTLS() (err error) {
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return usagef("--tls-cert and --tls-key need each other")
	}
	if c.tlsCert == "" {
		return nil
	}
	if c.pair, err = certificate.LoadPair(c.tlsCert, c.tlsKey, nil); err != nil {
		return fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return nil
}

// scheme is that of the server's URLs.
func (c *config) scheme() string {
	if c.pair != nil {
		return "https"
	}
	return "http"
}

// bounded counts what the listener accepts, and adds TLS if it is asked for.
func (c *config) bounded(l net.Listener, log *slog.Logger) net.Listener {
	bound := handlers.NewConnections(mostConnections(openFiles()))
	if c.pair == nil {
		return handlers.Listener(l, bound, log)
	}
	return handlers.SecureListener(l, bound, certificate.Config(c.pair, nil), log)
}

// reloaded is what is read from files again and again.
type reloaded struct {
	flags   string
	refresh func() (changed bool, err error)
	noted   func() []any // of what is in use now, for the log
	failing string       // why the files cannot be used, as it was logged
}

// keepTLS keeps up with the files of TLS, and shows it in the metrics, until stop is called,
// which waits for that.
func keepTLS(c *config, t *telemetry.Telemetry) (stop func()) {
	if c.pair == nil {
		return func() {}
	}
	ends := func() []any { return []any{"expires", c.pair.Expires().UTC().Format(time.RFC3339)} }
	files := []*reloaded{{flags: "--tls-cert and --tls-key", refresh: c.pair.Refresh, noted: ends}}
	t.Logger().Info("serving with TLS", ends()...)
	var refused atomic.Bool
	t.Metrics().ObserveTLS(func() telemetry.Secured {
		return telemetry.Secured{Expires: c.pair.Expires(), Refused: refused.Load()}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(reloadEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				refused.Store(reload(files, t.Logger()))
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// reload reads all files anew, and reports whether any cannot be used. Each reason is logged
// once.
func reload(files []*reloaded, log *slog.Logger) (refused bool) {
	for _, f := range files {
		changed, err := f.refresh()
		switch {
		case err != nil && err.Error() != f.failing:
			log.Error("what these files have now cannot be used; what they had before stays in use", append([]any{"flags", f.flags, "error", err}, f.noted()...)...)
			f.failing = err.Error()
		case changed:
			log.Info("files were read anew", append([]any{"flags", f.flags}, f.noted()...)...)
		}
		if err == nil {
			f.failing = ""
		}
		refused = refused || err != nil
	}
	return refused
}
