package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost/fencepost/audit"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/dashboard"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/openapi"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/closures"
	"github.com/fencepost/fencepost/service/replicas"
	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/webhook"
	"github.com/fencepost/fencepost/webhook/outbox"
	"github.com/fencepost/fencepost/webhook/subscription"
)

// briefHold is for how long the replica "brief" holds a request open.
const briefHold = time.Second

// world is everything behind the routes, as the server wires it.
type world struct {
	dir       string
	store     backing
	records   store.RecordStore // of store
	webhooks  *subscription.Subscriptions
	quotas    *quota.Book
	book      func()       // ends what follows the quotas
	directory func()       // ends what follows the subscriptions
	servers   func() error // ends what the store runs on
	telemetry *telemetry.Telemetry
	verifier  *auth.Verifier
	sessions  *auth.Sessions
	pages     *dashboard.Pages
	journal   *journal
	secrets   *secrets

	main  *replica // with the server's own bounds
	other *replica // like main
	brief *replica // answers 202 after briefHold

	tenants atomic.Int64
}

func newWorld() (*world, error) {
	w := &world{secrets: newSecrets()}
	w.journal = &journal{secrets: w.secrets}
	if err := w.start(context.Background()); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) start(ctx context.Context) (err error) {
	if w.dir, err = os.MkdirTemp("", "handlers-test-"); err != nil {
		return err
	}
	config := telemetry.Config{LogWriter: w.journal, LogLevel: slog.LevelDebug}
	if w.telemetry, err = telemetry.Setup(ctx, config); err != nil {
		return err
	}
	log := w.telemetry.Logger()
	if err = w.startStore(ctx, log); err != nil {
		return err
	}
	if err = w.startWebhooks(log); err != nil {
		return err
	}
	w.quotas = quota.New(quota.Config{Records: w.records, Logger: log})
	w.book = runs(w.quotas.Run)
	keys := filepath.Join(w.dir, "keys.json")
	if err = os.WriteFile(keys, publicKeys(), 0o600); err != nil {
		return err
	}
	if w.pages, err = dashboard.New(fstest.MapFS{
		"index.html":             {Data: []byte("<!doctype html>")},
		"assets/app-12345678.js": {Data: []byte("start()")},
	}); err != nil {
		return err
	}
	w.verifier, err = auth.New(
		ctx, auth.Config{Secret: secret(), JWKS: keys, Issuer: issuer, Audience: audience, Logger: log},
	)
	if err != nil {
		return err
	}
	if w.sessions, err = auth.NewSessions(w.store.TokenKey(), nil, w.verifier); err != nil {
		return err
	}
	w.main = w.replica(func(*service.Config) {}, w.telemetry.Tracer())
	w.other = w.replica(func(*service.Config) {}, w.telemetry.Tracer())
	w.brief = w.replica(func(c *service.Config) { c.MaxHold = briefHold }, w.telemetry.Tracer())
	return w.ready(ctx)
}

// startWebhooks has subscriptions kept in the store. Receivers may be at public addresses.
func (w *world) startWebhooks(log *slog.Logger) error {
	policy, err := webhook.NewPolicy(webhook.Settings{})
	if err != nil {
		return err
	}
	keys := subscription.NewKeys(w.store.TokenKey())
	d := subscription.NewDirectory(w.records, keys, log)
	w.webhooks = subscription.New(
		subscription.Config{Records: w.records, Keys: keys, Policy: policy, Directory: d},
	)
	w.directory = runs(d.Run)
	return nil
}

// runs runs something until stop is called.
func runs(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// startClosures returns the closures as a replica has them, once they were read.
func startClosures(records store.RecordStore, log *slog.Logger) (book *closures.Book, stop func()) {
	book = closures.New(closures.Config{Records: records, Logger: log})
	stop = runs(book.Run)
	for late := time.Now().Add(time.Minute); !book.Read() && time.Now().Before(late); {
		<-time.After(time.Millisecond)
	}
	return book, stop
}

func (w *world) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return errors.Join(awaitReady(ctx, w.main), awaitReady(ctx, w.other), awaitReady(ctx, w.brief))
}

// awaitReady waits for longer than the one second for which Ready itself does.
func awaitReady(ctx context.Context, r *replica) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.service.Ready(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		<-tick.C
	}
}

// close ends what start began, in reverse.
func (w *world) close() error {
	var errs []error
	for _, r := range []*replica{w.brief, w.other, w.main} {
		if r != nil {
			r.close()
		}
	}
	if w.verifier != nil {
		w.verifier.Close()
	}
	if w.directory != nil {
		w.directory()
	}
	if w.book != nil {
		w.book()
	}
	if w.store != nil {
		errs = append(errs, w.store.Close())
	}
	if w.servers != nil {
		errs = append(errs, w.servers())
	}
	if w.telemetry != nil {
		errs = append(errs, w.telemetry.Shutdown(context.Background()))
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// checkMetrics holds /metrics, after all that the tests did, against the rule
// that it names no secret and no lock, and no tenant unless that is asked for.
func (w *world) checkMetrics() error {
	answer := httptest.NewRecorder()
	w.telemetry.MetricsHandler().
		ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text := answer.Body.Bytes()
	if found := w.secrets.find(text); found != "" {
		return fmt.Errorf("/metrics shows the secret %q", found)
	}
	if found := ownNames.Find(text); found != nil {
		return fmt.Errorf("/metrics shows %q", found)
	}
	return nil
}

// replica is one server over the shared store.
type replica struct {
	service   *service.Service // nil where a test stands in for it
	server    *httptest.Server
	transport *http.Transport
	url       string
	console   *service.Console
	stop      func() // ends what reads closures, or nil
}

func (w *world) replica(change func(*service.Config), tracer trace.Tracer) *replica {
	config := service.Config{
		Store: w.store, Records: w.records, TokenKey: w.store.TokenKey(), MinTTL: minTTL,
		Metrics: w.telemetry.Metrics(), Logger: w.telemetry.Logger(), Tracer: tracer, Limits: w.quotas.Of,
	}
	closed, stopClosures := startClosures(w.records, w.telemetry.Logger())
	config.Closures = closed
	change(&config)
	s := service.New(config)
	h := w.handlers(s)
	h.Closures = closed
	h.Deliveries = outbox.NewDeliveries(w.records, s, s.Locks, w.webhooks.Journal)
	h.Audit = audit.NewLog(w.records, audit.DefaultRetention, nil)
	console := consoleOf(s)
	h.Console = console
	h.Tracer = tracer
	r := serve(s, handlers.New(h))
	r.console = console
	r.stop = stopClosures
	return r
}

// consoleOf is what operators see of a replica.
func consoleOf(s *service.Service) *service.Console {
	live := func() ([]replicas.Replica, bool) {
		return []replicas.Replica{{ID: replicaID, Host: "pod-1", Version: "test"}}, true
	}
	return service.NewConsole(service.ConsoleConfig{Service: s, Self: replicaID, Replicas: live})
}

// replicaID is that of each replica here.
const replicaID = "replica-of-tests"

// useCases are all that the routes use of a replica's service.
type useCases interface {
	handlers.Service
	handlers.Entries
	handlers.Locks
	handlers.StaleWrites
}

// handlers configures the HTTP layer over a service, or over a stand-in for all of it.
func (w *world) handlers(of handlers.Service) handlers.Config {
	config := w.unserved()
	if s, real := of.(*service.Service); real {
		config.Service, config.Entries, config.Locks = s, s.Entries, s.Locks
		config.StaleWrites = s.StaleWrites
		return config
	}
	all := of.(useCases)
	config.Service, config.Entries, config.Locks, config.StaleWrites = all, all, all, all
	return config
}

func (w *world) unserved() handlers.Config {
	return handlers.Config{
		Dashboard: w.pages, Sessions: w.sessions, PlainCookies: true, Codes: auth.NewCodes(nil),
		Console: &consoleStub{}, Webhooks: w.webhooks, Quotas: w.quotas,
		Verifier: w.verifier, Metrics: w.telemetry.Metrics(), Exposition: w.telemetry.MetricsHandler(),
		OpenAPI: openapi.Document(), Docs: openapi.Docs(), Version: "v1.2.3", Commit: "69f4879",
		Logger: w.telemetry.Logger(), Tracer: w.telemetry.Tracer(), Propagator: w.telemetry.Propagator(),
	}
}

func serve(s *service.Service, h http.Handler) *replica {
	server := httptest.NewServer(h)
	return &replica{
		service: s, server: server, url: server.URL, transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}
}

func (r *replica) close() {
	if r.service != nil {
		r.service.Drain()
	}
	r.transport.CloseIdleConnections()
	r.server.Close()
	if r.stop != nil {
		r.stop()
	}
	if r.service != nil {
		r.service.Close()
	}
}

// newReplica starts a further replica for one test.
func newReplica(t testing.TB, change func(*service.Config)) *replica {
	t.Helper()
	r := shared.replica(change, shared.telemetry.Tracer())
	t.Cleanup(r.close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := awaitReady(ctx, r); err != nil {
		t.Fatalf("the replica is not ready: %v", err)
	}
	return r
}

// newTenant returns a client of a new tenant, with both scopes.
func newTenant(t testing.TB) *client {
	t.Helper()
	tenant := fmt.Sprintf("tenant-%d-x", shared.tenants.Add(1))
	c := &client{t: t, replica: shared.main, claims: auth.Claims{
		Tenant: tenant, Subject: "worker-1", Scopes: []auth.Scope{auth.LocksRead, auth.LocksWrite},
		Issuer: issuer, Audience: audience,
	}}
	return c.as(func(*auth.Claims) {})
}
