package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/openapi"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/store/etcd"
	"github.com/fencepost/fencepost/telemetry"
)

const minTTL = etcd.MinTTL

// serve runs the server until ctx ends, then drains it. What is built in one
// order is torn down in the reverse one.
func serve(ctx context.Context, c *config, stdout, stderr io.Writer) (err error) {
	if c.dev {
		if c.secret, err = devSecret(c.dataDir); err != nil {
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
		ServiceVersion: version, LogWriter: stderr, LogFormat: c.logFormat, LogLevel: c.level,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdownTelemetry(t)) }()
	stopDebug, err := serveDebug(ctx, c.debugListen, t.Logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopDebug()) }()
	verifier, err := auth.New(ctx, auth.Config{
		Secret: c.secret, JWKS: c.jwks, Issuer: c.issuer, Audience: c.audience, Logger: t.Logger(),
	})
	if err != nil {
		return err
	}
	defer verifier.Close()
	store, closeStore, err := openStore(ctx, c, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	s := newService(c, t, store)
	defer s.Close()
	return serveHTTP(ctx, c, t, listener, newServer(t, verifier, s), s, stdout)
}

func shutdownTelemetry(t *telemetry.Telemetry) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.Shutdown(ctx)
}

// openStore starts or reaches etcd and opens the store in it.
func openStore(ctx context.Context, c *config, t *telemetry.Telemetry) (*etcd.Store, func() error, error) {
	conn, err := connect(ctx, c, t.Logger())
	if err != nil {
		return nil, nil, err
	}
	store, err := etcd.Open(ctx, conn, etcd.Config{
		Logger: t.Logger(), FenceFloor: c.fenceFloor, Observer: observeStore(t.Metrics()),
	})
	if err != nil {
		err = errors.Join(err, conn.Close())
		if errors.Is(err, lock.StoreUnavailable) {
			err = fmt.Errorf("the store %s cannot be used: %w", c.store, err)
		}
		return nil, nil, err
	}
	return store, func() error { return errors.Join(store.Close(), conn.Close()) }, nil
}

func connect(ctx context.Context, c *config, log *slog.Logger) (*etcd.Conn, error) {
	if c.endpoints == nil {
		return etcd.StartEmbedded(ctx, etcd.EmbeddedConfig{Dir: c.dataDir, Quota: c.quotaMB << 20, Logger: log})
	}
	return etcd.Dial(etcd.RemoteConfig{
		Endpoints: c.endpoints, TLS: c.tls, Username: c.storeUsername, Password: c.storePass,
	})
}

// observeStore leads what the store tells into the metrics.
func observeStore(m *telemetry.Metrics) etcd.Observer {
	ctx := context.Background()
	return etcd.Observer{
		Operation: func(name string, took time.Duration, err error) {
			outcome := telemetry.OutcomeOK
			if err != nil {
				outcome = telemetry.OutcomeError
			}
			m.StoreOperation(ctx, name, outcome, took)
		},
		Batch:     func(writes int) { m.Batched(ctx, writes) },
		FeedLag:   m.FeedLag,
		Restarted: func() { m.FeedRestarted(ctx) },
	}
}

func newService(c *config, t *telemetry.Telemetry, store *etcd.Store) *service.Service {
	key := c.tokenKey
	if key == nil {
		key = store.TokenKey()
	}
	s := service.New(service.Config{
		Store: store, TokenKey: key, MinTTL: minTTL,
		MaxTTL: time.Duration(c.maxTTL), MaxHold: time.Duration(c.maxHold), Classes: c.classes,
		Metrics: t.Metrics(), Logger: t.Logger(), Tracer: t.Tracer(),
	})
	t.Metrics().ObserveQueues(func() telemetry.Queues {
		byMode, oldest := s.Count()
		// Exclusive is there even if nobody is: an alert wants a 0.
		q := telemetry.Queues{ByMode: map[string]telemetry.QueueCounts{string(lock.Exclusive): {}}, OldestWait: oldest}
		for mode, n := range byMode {
			q.ByMode[string(mode)] = telemetry.QueueCounts(n)
		}
		return q
	})
	return s
}

// newServer has no read or write timeout: they would end waiting requests. The
// handlers set a deadline for each body instead.
func newServer(t *telemetry.Telemetry, v *auth.Verifier, s *service.Service) *http.Server {
	return &http.Server{
		Handler: handlers.New(handlers.Config{
			Locks: s, Verifier: v, Metrics: t.Metrics(), Exposition: t.MetricsHandler(),
			OpenAPI: openapi.Document(), Docs: openapi.Docs(),
			Logger: t.Logger(), Tracer: t.Tracer(), Propagator: t.Propagator(),
		}),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(t.Logger().Handler(), slog.LevelWarn),
	}
}

// serveHTTP serves until ctx ends or the server fails. Then requests that wait
// are told to go on elsewhere, and the others may end.
func serveHTTP(ctx context.Context, c *config, t *telemetry.Telemetry, l net.Listener, server *http.Server, s *service.Service, stdout io.Writer) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }() // ends with Shutdown or Close below
	t.Logger().Info("listening", "address", l.Addr().String(), "store", c.store, "version", version)
	if c.dev {
		if err := greetDeveloper(stdout, c.secret, c.dataDir, l.Addr()); err != nil {
			return errors.Join(err, server.Close())
		}
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	t.Logger().Info("draining", "seconds", time.Duration(c.drain).Seconds())
	s.Drain()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(c.drain))
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Logger().Warn("some requests did not end in time and are cut off", "error", err)
		return server.Close()
	}
	t.Logger().Info("stopped")
	return nil
}
