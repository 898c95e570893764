package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/fencepost/fencepost/handlers"
)

// opsConnections is how many connections those may have who watch the server: some scrapers
// and probes. Beyond the bound the oldest one is closed.
const opsConnections = 128

// beside is an address besides the one where clients are.
type beside struct {
	flag, address, says string // what the log says of it, at its level
	level               slog.Level
	handler             http.Handler
}

// serve listens until stop is called.
func (b beside) serve(ctx context.Context, log *slog.Logger) (stop func() error, err error) {
	if b.address == "" {
		return func() error { return nil }, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", b.address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.flag, err)
	}
	log.Log(ctx, b.level, b.says, "address", l.Addr().String())
	server := &http.Server{
		Handler: b.handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	// ends with Close
	go func() { ended <- server.Serve(handlers.NewConnections(opsConnections).Listener(l)) }()
	return func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// serveDebug serves the Go profiler on an address of its own, so that it is never
// reachable where clients are. It returns the func that ends it.
func serveDebug(
	ctx context.Context, address string, log *slog.Logger,
) (stop func() error, err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return beside{"--debug-listen", address, "serving the profiler", slog.LevelWarn, mux}.serve(
		ctx, log,
	)
}

// serveOps serves health and metrics where clients do not come, if that is asked for.
func serveOps(
	ctx context.Context, c *config, routes handlers.Config,
) (stop func() error, err error) {
	return beside{
		"--ops-listen", c.opsListen, "serving operations", slog.LevelInfo, handlers.NewOperations(routes),
	}.serve(ctx, routes.Logger)
}
