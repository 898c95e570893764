package handlers_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/fencepost/fencepost/handlers"
)

// lateMetrics keeps a request open until the test ends it.
type lateMetrics struct{ goOn chan struct{} }

func (m *lateMetrics) RequestStarted() {}

func (m *lateMetrics) RequestDone(context.Context, string, string, int, bool, time.Duration) {
	<-m.goOn
}

func (m *lateMetrics) QuotaRefused(context.Context, string) {}

func (m *lateMetrics) StreamOpened(context.Context, time.Duration) {}

func (m *lateMetrics) StreamClosed(context.Context, bool) {}

// TestAnswersFirst: an acquire and a release are answered before they are counted and logged: on a
// busy lock all waiters would wait for that.
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
