package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/auth"
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

// clients are those whose certificates are taken in place of a bearer token.
type clients struct {
	authorities *certificate.Authorities
	principals  *auth.Principals
}

// resolveClients reads whose certificates are taken.
func (c *config) resolveClients() error {
	switch {
	case c.clientCA == "" && c.principals == "":
		return nil
	case c.clientCA == "" || c.principals == "":
		return usagef("--client-ca and --principals need each other")
	case c.tlsCert == "":
		return usagef("--client-ca needs --tls-cert: without TLS nobody shows a certificate")
	}
	authorities, caErr := certificate.LoadAuthorities(c.clientCA)
	if caErr != nil {
		caErr = fmt.Errorf("--client-ca: %w", caErr)
	}
	principals, err := auth.LoadPrincipals(c.principals, nil)
	if err != nil {
		err = fmt.Errorf("--principals: %w", err)
	}
	c.clients = &clients{authorities, principals}
	return errors.Join(caErr, err)
}

// Identify implements handlers.Certificates.
func (c *clients) Identify(state *tls.ConnectionState) (*auth.Principal, error) {
	if len(state.PeerCertificates) == 0 {
		return nil, nil //nolint:nilnil // as it says
	}
	owner := c.authorities.Owner(state)
	if owner == nil {
		return nil, &auth.Error{Reason: auth.UnknownCertificate, Detail: "the client certificate is not trusted any more"}
	}
	return c.principals.Identify(owner)
}

// files are what is read again and again.
func (c *clients) files() []*reloaded {
	if c == nil {
		return nil
	}
	return []*reloaded{
		{flags: "--client-ca", refresh: c.authorities.Refresh},
		{flags: "--principals", refresh: c.principals.Refresh, of: telemetry.FilePrincipals},
	}
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
	bound := handlers.NewConnections(min(mostConnections(openFiles()), roomIn(c.ceilingBytes()).connections))
	if c.pair == nil {
		return handlers.Listener(l, bound, log)
	}
	return handlers.SecureListener(l, bound, certificate.Config(c.pair, c.authorities()), log)
}

func (c *config) authorities() *certificate.Authorities {
	if c.clients == nil {
		return nil
	}
	return c.clients.authorities
}

// reloaded is what is read from files again and again.
type reloaded struct {
	flags   string
	refresh func() (changed bool, err error)
	noted   func() []any // of what is in use now, for the log; nil is nothing
	failing string       // why the files cannot be used, as it was logged
	of      string       // in the metrics, of files of principals; those of certificates have one figure
	refused atomic.Bool  // they cannot be used
}

// keepFiles keeps up with the files of TLS and of who may what, and shows the certificate in
// the metrics, until stop is called, which waits for that.
func keepFiles(c *config, t *telemetry.Telemetry) (stop func()) {
	files := append(c.clients.files(), c.oidc.files()...)
	if c.pair != nil {
		ends := func() []any { return []any{"expires", c.pair.Expires().UTC().Format(time.RFC3339)} }
		files = append(files, &reloaded{flags: "--tls-cert and --tls-key", refresh: c.pair.Refresh, noted: ends})
		t.Logger().Info("serving with TLS", ends()...)
	}
	if len(files) == 0 {
		return func() {}
	}
	observeFiles(c, t, files)
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
				reload(files, t.Logger())
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// observeFiles shows in the metrics which files cannot be used. What is wrong with who may what is
// not to be taken for a certificate that ends.
func observeFiles(c *config, t *telemetry.Telemetry, files []*reloaded) {
	if c.pair != nil {
		t.Metrics().ObserveTLS(func() telemetry.Secured {
			return telemetry.Secured{Expires: c.pair.Expires(), Refused: refused(files)[""]}
		})
	}
	t.Metrics().ObservePrincipals(func() map[string]bool { return refused(files) })
}

// refused tells by what files are of whether any cannot be used.
func refused(files []*reloaded) map[string]bool {
	all := map[string]bool{}
	for _, f := range files {
		all[f.of] = all[f.of] || f.refused.Load()
	}
	return all
}

// reload reads all files anew. Each reason for which some cannot be used is logged once.
func reload(files []*reloaded, log *slog.Logger) {
	for _, f := range files {
		changed, err := f.refresh()
		noted := []any{"flags", f.flags}
		if f.noted != nil {
			noted = append(noted, f.noted()...)
		}
		switch {
		case err != nil && err.Error() != f.failing:
			log.Error("what these files have now cannot be used; what they had before stays in use", append(noted, "error", err)...)
			f.failing = err.Error()
		case changed:
			log.Info("files were read anew", noted...)
		}
		if err == nil {
			f.failing = ""
		}
		f.refused.Store(err != nil)
	}
}
