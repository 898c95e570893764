package handlers_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
)

// lateMetrics does not get done with a request before it is told to.
type lateMetrics struct{ goOn chan struct{} }

func (m *lateMetrics) RequestStarted() {}

func (m *lateMetrics) RequestDone(context.Context, string, string, int, bool, time.Duration) {
	<-m.goOn
}

func (m *lateMetrics) QuotaRefused(context.Context, string) {}

func (m *lateMetrics) StreamOpened(context.Context, time.Duration) {}

func (m *lateMetrics) StreamClosed(context.Context, bool) {}

// TestAnswersFirst has the answers to an acquire and a release arrive although the
// requests are neither counted nor logged yet: on a busy lock that would be time for
// which everybody waits.
func TestAnswersFirst(t *testing.T) {
	m := &lateMetrics{make(chan struct{})}
	config := shared.handlers(shared.main.service)
	config.Metrics = m
	r := serve(nil, handlers.New(config))
	r.transport.DisableKeepAlives = true // the next request on a connection has to wait
	t.Cleanup(r.close)
	t.Cleanup(func() { close(m.goOn) }) // before that
	c := newTenant(t).at(r)
	e := c.post("/locks/a", body(`{}`)).held(http.StatusCreated)
	c.delete("/locks/a", lockToken(e.Token)).wantNoContent()
}
