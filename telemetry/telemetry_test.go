package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/telemetry"
)

// unsetStandard removes the standard variables, so that the environment does not change what the
// tests see.
func unsetStandard(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER",
		"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
	} {
		t.Setenv(name, "")
	}
}

func setup(t *testing.T, c telemetry.Config) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutdown(t, tel) })
	return tel
}

func shutdown(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := tel.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// started returns what waits until all that was started since has ended. A Shutdown that gives up
// leaves the SDK exporting, which reports what fails to whichever set-up is the last.
func started(t *testing.T) (ended func()) {
	before := goleak.IgnoreCurrent()
	return func() {
		t.Helper()
		until := time.Now().Add(30 * time.Second)
		for err := goleak.Find(before); err != nil; err = goleak.Find(before) {
			if time.Now().After(until) {
				t.Fatal(err)
			}
		}
	}
}

// collector stands in for an OTLP collector. It keeps the bodies by path.
type collector struct {
	*httptest.Server

	mu     sync.Mutex
	bodies map[string][]byte
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{bodies: make(map[string][]byte)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("collector: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], body...)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) received(path, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.bodies[path], []byte(text))
}

func port(c *collector) string {
	return strconv.Itoa(c.Listener.Addr().(*net.TCPAddr).Port)
}

func (c *collector) paths() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.bodies)
}

func TestSignalsAreSentWhereTheEnvironmentAsks(t *testing.T) {
	const traces, metrics = "/v1/traces", "/v1/metrics"
	tests := []struct {
		name string
		env  map[string]string // $C is the collector's URL, $P its port
		want map[string]bool
	}{
		{"Nothing", nil, nil},
		{
			"Endpoint",
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "$C"},
			map[string]bool{traces: true, metrics: true},
		},
		{
			"TracesEndpoint",
			map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "$C" + traces},
			map[string]bool{traces: true},
		},
		{
			"MetricsEndpoint",
			map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "$C" + metrics},
			map[string]bool{metrics: true},
		},
		{
			"ExporterNone",
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "$C", "OTEL_TRACES_EXPORTER": "none"},
			map[string]bool{metrics: true},
		},
		{
			"ExporterPrometheus",
			// The port is taken, so opening it would be an error.
			map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "$C", "OTEL_METRICS_EXPORTER": "prometheus",
				"OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1", "OTEL_EXPORTER_PROMETHEUS_PORT": "$P",
			},
			map[string]bool{traces: true},
		},
		{
			"Disabled",
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "$C", "OTEL_SDK_DISABLED": "TRUE"},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			unsetStandard(t)
			c := startCollector(t)
			for name, value := range tt.env {
				t.Setenv(name, strings.NewReplacer("$C", c.URL, "$P", port(c)).Replace(value))
			}
			tel, err := telemetry.Setup(t.Context(), telemetry.Config{ServiceVersion: "v1.2.3"})
			if err != nil {
				t.Fatal(err)
			}
			_, span := tel.Tracer().Start(t.Context(), "a-span")
			if got, want := span.IsRecording(), tt.want[traces]; got != want {
				t.Errorf("span is recorded = %t, want %t", got, want)
			}
			span.End()
			shutdown(t, tel)

			if got, want := c.received(traces, "a-span"), tt.want[traces]; got != want {
				t.Errorf("span sent = %t, want %t", got, want)
			}
			if got, want := c.received(metrics, "fencepost.build.info"), tt.want[metrics]; got != want {
				t.Errorf("metrics sent = %t, want %t", got, want)
			}
			if got := c.paths(); got != len(tt.want) {
				t.Errorf("collector was asked at %d paths, want %d", got, len(tt.want))
			}
			for path := range tt.want {
				if !c.received(path, "service.version") {
					t.Errorf("%s does not say what sends it", path)
				}
			}
		})
	}
}

func TestMetricsAreAlwaysThere(t *testing.T) {
	for _, disabled := range []string{"", "true"} {
		unsetStandard(t)
		t.Setenv("OTEL_SDK_DISABLED", disabled)
		tel := setup(t, telemetry.Config{ServiceVersion: "v1.2.3"})
		if body := scrape(t, tel, ""); !strings.Contains(body, `fencepost_build_info{go_version="go`) {
			t.Errorf("OTEL_SDK_DISABLED=%q: no fencepost_build_info in\n%s", disabled, body)
		}
	}
}

func TestSettingsWithoutSenseAreRefused(t *testing.T) {
	tests := []struct{ name, variable, value, want string }{
		{"Exporter", "OTEL_TRACES_EXPORTER", "pigeon", "traces"},
		{"Protocol", "OTEL_EXPORTER_OTLP_PROTOCOL", "carrier", "OTLP protocol"},
		{"Resource", "OTEL_RESOURCE_ATTRIBUTES", "no-value", "OTEL_RESOURCE_ATTRIBUTES"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			unsetStandard(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(tt.variable, tt.value)
			_, err := telemetry.Setup(t.Context(), telemetry.Config{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Setup = %v, want an error that contains %q", err, tt.want)
			}
		})
	}
	t.Run("LogFormat", func(t *testing.T) {
		unsetStandard(t)
		if _, err := telemetry.Setup(t.Context(), telemetry.Config{LogFormat: "xml"}); err == nil {
			t.Error("Setup took the log format xml")
		}
	})
}

// A collector that is down must not hold up the service, and what the SDK says
// about it must come as a line of the log.
func TestCollectorThatIsDownIsLogged(t *testing.T) {
	unsetStandard(t)
	ended := started(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", dead.URL)
	var log bytes.Buffer
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{LogWriter: &log})
	if err != nil {
		t.Fatal(err)
	}
	otel.Handle(io.ErrUnexpectedEOF) // as the SDK reports a failed export

	_, span := tel.Tracer().Start(t.Context(), "a-span")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := tel.Shutdown(ctx); err == nil {
		t.Error("Shutdown said nothing of the lost span")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Shutdown took %v with 200 ms to spend", took)
	}
	ended()
	line := lines(t, log.Bytes())[0]
	if line["level"] != "WARN" || line["error"] != io.ErrUnexpectedEOF.Error() {
		t.Errorf("first line = %v, want the error as a warning", line)
	}
}

// TestHangingCollectorTakesNoMemory: spans that the collector does not accept are dropped.
func TestHangingCollectorTakesNoMemory(t *testing.T) {
	unsetStandard(t)
	defer started(t)()
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	defer hanging.Close()
	defer close(answer)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hanging.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	large := attribute.String("large", strings.Repeat("x", 2<<10))
	spans := func(n int) {
		for range n {
			_, span := tel.Tracer().Start(
				t.Context(), "a-span",
				trace.WithAttributes(large, attribute.String("own", strings.Repeat("y", 1<<10))),
			)
			span.End()
			tel.Metrics().StoreOperation(t.Context(), "txn", telemetry.OutcomeOK, time.Millisecond)
		}
	}
	spans(5000) // as many as it keeps, and some that it sends
	<-asked
	before := heap()
	spans(100_000)
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("100 MB of spans that nobody takes take %d MB", grown>>20)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := tel.Shutdown(ctx); err == nil || time.Since(start) > 10*time.Second {
		t.Errorf("Shutdown = %v after %v with 200 ms to spend", err, time.Since(start))
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestTraceparentIsPassedOn(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, exporting := range []bool{false, true} {
		unsetStandard(t)
		if exporting {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", startCollector(t).URL)
		}
		tel := setup(t, telemetry.Config{})

		in := propagation.MapCarrier{"traceparent": parent, "baggage": "k=v"}
		ctx := tel.Propagator().Extract(t.Context(), in)
		ctx, span := tel.Tracer().Start(ctx, "a-span")
		defer span.End()
		out := propagation.MapCarrier{}
		tel.Propagator().Inject(ctx, out)

		if span.IsRecording() != exporting {
			t.Errorf("exporting=%t: span.IsRecording() = %t", exporting, span.IsRecording())
		}
		if got, want := out["traceparent"][:35], parent[:35]; got != want {
			t.Errorf("exporting=%t: trace = %s, want %s", exporting, got, want)
		}
		if (out["traceparent"] == parent) == exporting {
			t.Errorf("exporting=%t: traceparent = %s, incoming %s", exporting, out["traceparent"], parent)
		}
		if out["baggage"] != "k=v" {
			t.Errorf("exporting=%t: baggage = %q, want k=v", exporting, out["baggage"])
		}
	}
}

// A tracer without an exporter must not even allocate under a remote parent.
func TestSpansCostNothingWithoutExporter(t *testing.T) {
	unsetStandard(t)
	tracer := setup(t, telemetry.Config{}).Tracer()
	remote := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true,
	})
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), remote)
	if n := testing.AllocsPerRun(100, func() {
		_, span := tracer.Start(ctx, "a-span")
		span.End()
	}); n != 0 {
		t.Errorf("a span allocates %v times", n)
	}
}

func TestLinesAfterShutdownAreWritten(t *testing.T) {
	unsetStandard(t)
	var log bytes.Buffer
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{LogWriter: &log})
	if err != nil {
		t.Fatal(err)
	}
	tel.Logger().Info("before")
	shutdown(t, tel)
	shutdown(t, tel) // twice is safe
	tel.Logger().Info("after")
	if got := lines(
		t, log.Bytes(),
	); len(got) != 2 || got[0]["msg"] != "before" || got[1]["msg"] != "after" {
		t.Errorf("log = %v, want before and after", got)
	}
}

func scrape(t *testing.T, tel *telemetry.Telemetry, accept string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("GET /metrics = %d\n%s", w.Code, w.Body)
	}
	return w.Body.String()
}

func lines(t *testing.T, log []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range bytes.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, fields)
	}
	return all
}
