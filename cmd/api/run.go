package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/dashboard"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/openapi"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/webhook/outbox"
)

// serve runs the server until ctx ends, then drains it. What is built in one
// order is torn down in the reverse one.
func serve(ctx context.Context, c *config, stdout, stderr io.Writer) (err error) {
	if c.dev {
		if c.secret, err = c.devSecret(); err != nil {
			return err
		}
	}
	// The address comes first: two servers must not meet in the data folder.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer func() { _ = listener.Close() }() // the server has closed it, unless it never came to serve
	t, err := telemetry.Setup(ctx, telemetry.Config{
		ServiceVersion: thisBuild().version, LogWriter: stderr, LogFormat: c.logFormat, LogLevel: c.level,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdownTelemetry(t)) }()
	for _, text := range c.warnings {
		t.Logger().Warn(text)
	}
	defer keepFiles(c, t)()
	stopDebug, err := serveDebug(ctx, c.debugListen, t.Logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopDebug()) }()
	return serveStore(ctx, c, t, listener, stdout)
}

// serveStore serves what is in the store.
func serveStore(
	ctx context.Context, c *config, t *telemetry.Telemetry, listener net.Listener, stdout io.Writer,
) (err error) {
	verifier, err := auth.New(ctx, auth.Config{
		Secret: c.secret, JWKS: c.jwks, Issuer: c.issuer, Audience: c.audience,
		Names: c.claims, Logger: t.Logger(),
	})
	if err != nil {
		return err
	}
	defer verifier.Close()
	opened, err := openStore(ctx, c, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	t.Metrics().ObserveRefusal(func() string { return reasonOf(opened.Refusal()) })
	key, err := deploymentKey(c.tokenKey, opened.TokenKey())
	if err != nil {
		return err
	}
	resume(ctx, t, opened)
	replicas := newReplicas(opened.smallRecords(), t)
	journal := audit.NewJournal(opened.smallRecords(), nil, t.Logger())
	limits, stopQuotas := newQuotas(c, t, opened.smallRecords(), journal)
	defer stopQuotas()
	closed := closures.New(closures.Config{
		Records: opened.smallRecords(), Journal: journal, Logger: t.Logger(),
	})
	defer background(closed.Run)()
	s := service.New(service.Config{
		Store: opened, Records: opened.smallRecords(), TokenKey: key, MinTTL: c.minTTL(),
		MaxTTL: time.Duration(c.maxTTL), MaxHold: time.Duration(c.maxHold),
		Sharing: replicas.Sharing, Limits: limits.Of, Journal: journal, Closures: closed,
		Metrics: t.Metrics(), Logger: t.Logger(), Tracer: t.Tracer(),
	})
	defer s.Close()
	observe(t, s.Locks)
	leaveReplicas := background(func(ctx context.Context) { replicas.Run(ctx, s.Current) })
	defer leaveReplicas()
	webhooks, stopWebhooks := newWebhooks(c, t, opened.smallRecords(), key, limits, journal)
	defer stopWebhooks()
	observeUsage(t, s.Locks, limits, webhooks)
	defer sendWebhooks(c, t, s, replicas, webhooks, opened.smallRecords(), limits)()
	defer leaveReplicas() // earlier: then others queue for the shards that this replica gives up
	console := service.NewConsole(service.ConsoleConfig{
		Service: s, Self: replicas.Sharing().Self, Replicas: replicas.Live,
	})
	trail, stopTrail := newAudit(c, t, opened.smallRecords(), replicas)
	defer stopTrail()
	routes := handlers.Config{
		Service: s, Entries: s.Entries, Locks: s.Locks, StaleWrites: s.StaleWrites, Audit: trail,
		Closures: closed, Webhooks: webhooks,
		Deliveries: outbox.NewDeliveries(opened.smallRecords(), s, s.Locks, webhooks.Journal),
		Console:    console, Quotas: limits, Verifier: verifier, KeysReady: verifier.Ready,
	}
	codes, err := addDashboard(&routes, c, key, verifier)
	if err != nil {
		return err
	}
	routes = complete(routes, c, t)
	stopOps, err := serveOps(ctx, c, routes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopOps()) }()
	return serveHTTP(
		ctx, c, t, listener, newServer(c, t, routes), s,
		func(at net.Addr) error { return c.greetDeveloper(ctx, stdout, at, codes, verifier) },
	)
}

func shutdownTelemetry(t *telemetry.Telemetry) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.Shutdown(ctx)
}

// background calls run in a goroutine of its own, until stop is called, which waits for its end.
func background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// observe has the metrics ask about the locks that this replica sees.
func observe(t *telemetry.Telemetry, s *service.Locks) {
	t.Metrics().ObserveQueues(func() (telemetry.Queues, bool) {
		byMode, oldest := s.Count()
		// Exclusive is there without entries too: an alert needs a 0.
		q := telemetry.Queues{
			ByMode: map[string]telemetry.QueueCounts{string(lock.Exclusive): {}}, OldestWait: oldest,
			Deepest: s.Deepest(), Revision: s.Revision(),
		}
		for mode, n := range byMode {
			q.ByMode[string(mode)] = telemetry.QueueCounts(n)
		}
		return q, byMode != nil
	})
	t.Metrics().ObserveCounts(func() telemetry.Counts {
		n := s.Totals()
		return telemetry.Counts{
			HoldersExpired: n.Expired - n.WaitersExpired, WaitersExpired: n.WaitersExpired,
			Contradictions: n.Contradicted, EventsDropped: n.EventsDropped,
		}
	})
}

// addDashboard adds the dashboard to the routes, and how one signs in there. key is the
// secret that the replicas share. The codes are nil but in development.
func addDashboard(
	routes *handlers.Config, c *config, key []byte, verifier *auth.Verifier,
) (*auth.Codes, error) {
	pages, err := dashboard.Built()
	if err != nil {
		return nil, err
	}
	vouchers := []auth.Voucher{verifier}
	if c.oidc.rights != nil {
		vouchers = append(vouchers, c.oidc.rights)
	}
	sessions, err := auth.NewSessions(key, nil, vouchers...)
	if err != nil {
		return nil, err
	}
	routes.Dashboard, routes.Sessions, routes.PlainCookies = pages, sessions, c.plain
	provider, err := c.oidc.provider(key)
	if err != nil {
		return nil, err
	}
	if provider != nil {
		routes.SignIn = provider
	}
	if !c.dev {
		return nil, nil
	}
	codes := auth.NewCodes(nil)
	routes.Codes = codes
	return codes, nil
}

// complete fills in what has nothing to do with use cases.
func complete(routes handlers.Config, c *config, t *telemetry.Telemetry) handlers.Config {
	routes.Metrics, routes.Exposition = t.Metrics(), t.MetricsHandler()
	routes.OpenAPI, routes.Docs = openapi.DocumentUnder(c.basePath), openapi.Docs()
	routes.Logger, routes.Tracer, routes.Propagator = t.Logger(), t.Tracer(), t.Propagator()
	routes.BasePath, routes.TrustedProxyHops = c.basePath, int(c.proxyHops)
	built := thisBuild()
	routes.Version, routes.Commit = built.version, built.commit
	if c.clients != nil {
		routes.Clients = c.clients.certificates
	}
	return routes
}

// newServer answers on the routes. It has no read or write timeout: they would end waiting
// requests. The handlers set a deadline for each body instead. The metrics are where
// operations are, if these have an address of their own.
func newServer(c *config, t *telemetry.Telemetry, routes handlers.Config) *http.Server {
	if c.opsListen != "" {
		routes.Exposition = nil
	}
	return &http.Server{
		Handler:           handlers.New(routes),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Duration(c.idleTimeout),
		MaxHeaderBytes:    32 << 10, // a bearer token of 16 KiB, and cookies and trace state next to it
		ConnContext:       handlers.ConnContext,
		HTTP2:             handlers.HTTP2(),
		// The routes answer OPTIONS * too, which net/http would do on its own.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(serverLog{t.Logger()}, "", 0),
	}
}

// serverLog takes the lines of net/http. Scanners and port checks fail TLS handshakes all day, so
// these lines are for those who debug.
type serverLog struct{ *slog.Logger }

// Write implements io.Writer.
func (l serverLog) Write(line []byte) (int, error) {
	level, text := slog.LevelWarn, string(bytes.TrimSpace(line))
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = slog.LevelDebug
	}
	l.Log(context.Background(), level, text)
	return len(line), nil
}

// serveHTTP serves until ctx ends or the server fails. Then requests that wait
// get an answer that sends them elsewhere, and the others may end. Load balancers may be given
// a while to see it before the server stops listening.
func serveHTTP(
	ctx context.Context, c *config, t *telemetry.Telemetry, l net.Listener, server *http.Server,
	s *service.Service, greet func(net.Addr) error,
) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(c.bounded(l)) }() // ends with Shutdown or Close below
	built := thisBuild()
	t.Logger().Info(
		"listening", "address", l.Addr().String(), "store", c.store, "version", built.version, "commit",
		built.commit,
	)
	if c.dev {
		if err := greet(l.Addr()); err != nil {
			return errors.Join(err, server.Close())
		}
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	t.Logger().Info(
		"draining", "delay_seconds", c.drainDelay, "seconds", time.Duration(c.drain).Seconds(),
	)
	s.Drain()
	select {
	case err := <-failed:
		return err
	case <-time.After(time.Duration(c.drainDelay * float64(time.Second))):
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(c.drain))
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Logger().Warn("some requests did not end in time and are cut off", "error", err)
		return server.Close()
	}
	t.Logger().Info("stopped")
	return nil
}
