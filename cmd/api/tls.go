package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/auth"
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
	if c.pair, err = loadKeyPair(c.tlsCert, c.tlsKey, nil); err != nil {
		return fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return nil
}

// clients are the files by which client certificates count in place of a bearer token.
type clients struct {
	authorities  *auth.Authorities
	principals   *auth.Principals
	certificates *auth.Certificates // by both
}

// resolveClients reads the files.
func (c *config) resolveClients() error {
	switch {
	case c.clientCA == "" && c.principals == "":
		return nil
	case c.clientCA == "" || c.principals == "":
		return usagef("--client-ca and --principals need each other")
	case c.tlsCert == "":
		return usagef("--client-ca needs --tls-cert: without TLS no client shows a certificate")
	}
	authorities, caErr := auth.LoadAuthorities(c.clientCA)
	if caErr != nil {
		caErr = fmt.Errorf("--client-ca: %w", caErr)
	}
	principals, err := auth.LoadPrincipals(c.principals, nil)
	if err != nil {
		err = fmt.Errorf("--principals: %w", err)
	}
	if wrong := errors.Join(caErr, err); wrong != nil {
		return wrong
	}
	c.clients = &clients{authorities, principals, auth.NewCertificates(authorities, principals)}
	return nil
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
func (c *config) bounded(l net.Listener) net.Listener {
	most := mostConnections(openFiles(), debug.SetMemoryLimit(-1))
	l = handlers.NewConnections(most).Listener(l)
	if c.pair == nil {
		return l
	}
	return tls.NewListener(l, c.servingTLS())
}

// servingTLS shows the certificate as it is when a client connects. With --client-ca a client may
// show a certificate that one of its authorities signed; any other ends the connection.
func (c *config) servingTLS() *tls.Config {
	base := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.pair.show,
	}
	if c.clients == nil {
		return base
	}
	// A session that is resumed would keep what was verified when it began.
	base.SessionTicketsDisabled = true
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own := base.Clone()
		own.GetConfigForClient = nil
		own.ClientAuth, own.ClientCAs = tls.VerifyClientCertIfGiven, c.clients.authorities.Pool()
		return own, nil
	}
	return base
}

// reloaded is what is read from files again and again.
type reloaded struct {
	flags   string
	refresh func() (changed bool, err error)
	noted   func() []any // of what is in use now, for the log; nil is nothing
	failing string       // why the files cannot be used, as it was logged
	// in the metrics, of files of principals; those of certificates have one figure
	of      string
	refused atomic.Bool // they cannot be used
}

// keepFiles keeps up with the files of TLS and of principals, and shows the certificate in
// the metrics, until stop is called, which waits for that.
func keepFiles(c *config, t *telemetry.Telemetry) (stop func()) {
	files := append(c.clients.files(), c.oidc.files()...)
	if c.pair != nil {
		ends := func() []any { return []any{"expires", c.pair.expires().UTC().Format(time.RFC3339)} }
		files = append(
			files, &reloaded{flags: "--tls-cert and --tls-key", refresh: c.pair.refresh, noted: ends},
		)
		t.Logger().Info("serving with TLS", ends()...)
	}
	if len(files) == 0 {
		return func() {}
	}
	observeFiles(c, t, files)
	return background(func(ctx context.Context) {
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
}

// observeFiles shows in the metrics which files cannot be used. A wrong file of principals is
// not shown as a certificate that ends.
func observeFiles(c *config, t *telemetry.Telemetry, files []*reloaded) {
	if c.pair != nil {
		t.Metrics().ObserveTLS(func() telemetry.Secured {
			return telemetry.Secured{Expires: c.pair.expires(), Refused: refused(files)[""]}
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

// reload reads all files again. Each reason for which some cannot be used is logged once.
func reload(files []*reloaded, log *slog.Logger) {
	for _, f := range files {
		changed, err := f.refresh()
		noted := []any{"flags", f.flags}
		if f.noted != nil {
			noted = append(noted, f.noted()...)
		}
		switch {
		case err != nil && err.Error() != f.failing:
			log.Error(
				"what these files have now cannot be used; what they had before stays in use",
				append(noted, "error", err)...,
			)
			f.failing = err.Error()
		case changed:
			log.Info("files were read again", noted...)
		}
		if err == nil {
			f.failing = ""
		}
		f.refused.Store(err != nil)
	}
}
