// Command ledger serves the journal of the settlement example over HTTP. It is
// the resource that the locks protect, and it checks their fences.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/examples/settlement/ledger"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "address to serve on; port 0 picks a free one")
	file := flag.String("file", "ledger.db", "the SQLite file")
	fence := flag.String("fence", "on", "on checks the fence of every write, off accepts them all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *file, *fence); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, file, fence string) (err error) {
	if fence != "on" && fence != "off" {
		return fmt.Errorf("-fence is on or off, not %q", fence)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	journal, err := ledger.Open(ctx, file, fence == "on")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	log.Info("listening", "address", listener.Addr().String(), "fence", fence)
	return serve(ctx, listener, ledger.Handler(journal, log))
}

// serve returns once ctx is done and the requests in flight are answered.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	deadline, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := server.Shutdown(deadline)
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
