package side

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/test/bench/load"
)

// ServeEmpty answers the two requests of a cycle with nothing at all, by gin
// without any middleware, which is the most that an HTTP server built like ours
// can do. It writes its address to out and serves until in ends.
func ServeEmpty(out io.Writer, in io.Reader) error {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/locks/:name", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	engine.DELETE("/locks/:name", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: engine}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	_, writeErr := fmt.Fprintln(out, listener.Addr())
	_, readErr := io.Copy(io.Discard, in)
	closeErr := server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return errors.Join(writeErr, readErr, closeErr)
}

type emptyWorker struct {
	http *caller
	name string
}

// NewEmptyWorkers returns n clients of [ServeEmpty] at base.
func NewEmptyWorkers(c *Connections, base *url.URL, n int) []load.Worker {
	workers := make([]load.Worker, n)
	for i := range workers {
		workers[i] = &emptyWorker{http: newCaller(c, base, http.Header{})}
	}
	return workers
}

func (w *emptyWorker) Acquire(ctx context.Context, name string) (int64, error) {
	w.name = name
	_, err := w.http.expect(ctx, http.StatusNoContent, http.MethodPost, "/locks/"+name, nil, nil)
	return 0, err
}

func (w *emptyWorker) Release(ctx context.Context) error {
	_, err := w.http.expect(ctx, http.StatusNoContent, http.MethodDelete, "/locks/"+w.name, nil, nil)
	return err
}
