package telemetry_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fencepost/fencepost/telemetry"
	"github.com/fencepost/fencepost/test/bubble"
)

// family is what a row of the tables in docs/reference/metrics.md says of a metric.
type family struct {
	Type   string
	Labels []string
}

func TestNamesAreThoseOfTheReadme(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{})
	measureEverything(t, tel.Metrics())

	got := make(map[string]family)
	for name, f := range scrapeFamilies(t, tel) {
		got[name] = describe(f)
	}
	want := documented(t)
	got["target_info"] = family{Type: "gauge"} // labels are the resource's
	for name := range got {
		if strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "go_") {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference/metrics.md (-) and /metrics (+) differ:\n%s", diff)
	}
}

func measureEverything(t *testing.T, m *telemetry.Metrics) {
	t.Helper()
	ctx := t.Context()
	m.ObserveQueues(func() (telemetry.Queues, bool) {
		return telemetry.Queues{
			ByMode:     map[string]telemetry.QueueCounts{"exclusive": {Held: 3, Waiting: 2}},
			OldestWait: 90 * time.Second, Deepest: 7,
		}, true
	})
	m.ObserveRefusal(func() string { return "" })
	m.ObserveTLS(func() telemetry.Secured { return telemetry.Secured{Expires: time.Now()} })
	m.ObserveWebhooks(func() telemetry.Webhooks {
		return telemetry.Webhooks{Backlog: 6, Oldest: 90 * time.Second, Lag: 7 * time.Second}
	})
	m.WebhookAttempted(ctx, "failed", time.Second)
	m.StreamOpened(ctx, time.Millisecond)
	m.StreamOpened(ctx, time.Millisecond)
	m.StreamClosed(ctx, true)
	m.ObserveUsage(usageOf(7))
	m.QuotaRefused(ctx, "waiting")
	m.ObserveStoreSize(func() (int64, int64) { return 5 << 20, 1 << 30 })
	m.ObservePrincipals(func() map[string]bool {
		return map[string]bool{
			telemetry.FilePrincipals: true, telemetry.FileOIDCPrincipals: false, "odd": true,
		}
	})
	m.ObserveCounts(func() telemetry.Counts {
		return telemetry.Counts{HoldersExpired: 2, WaitersExpired: 5, Contradictions: 3, EventsDropped: 4}
	})
	m.ObserveReplicas(func() (int, bool) { return 3, true })
	m.FeedLag(1500 * time.Millisecond)
	m.Waited(ctx, telemetry.WaitGranted, true, 70*time.Millisecond)
	m.Held(ctx, "shared", telemetry.HoldReleased, time.Second)
	m.HandedOver(ctx, 3*time.Millisecond)
	m.Acquired(ctx, telemetry.WaitGranted, 3)
	m.RenewedWith(ctx, .65)
	m.Revoked(ctx, telemetry.ActorTenantAdmin)
	m.StaleWrite(ctx, 4*time.Second)
	m.Renewed(ctx, telemetry.OutcomeLate)
	m.Renewed(ctx, telemetry.OutcomeLost)
	m.StoreOperation(ctx, "txn", telemetry.OutcomeOK, time.Millisecond)
	m.Batched(ctx, 12)
	m.FeedRestarted(ctx)
	m.RequestStarted()
	m.RequestStarted()
	m.RequestDone(ctx, "POST", "/locks/:name", 201, true, 20*time.Millisecond)
}

func scrapeFamilies(t *testing.T, tel *telemetry.Telemetry) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, tel, "")))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func describe(f *dto.MetricFamily) family {
	d := family{Type: strings.ToLower(f.GetType().String())}
	for _, l := range f.GetMetric()[0].GetLabel() {
		d.Labels = append(d.Labels, l.GetName())
	}
	slices.Sort(d.Labels)
	return d
}

// documented reads the tables below Gauges, Counters and Histograms: | `name{label,label}` | meaning |
func documented(t *testing.T) map[string]family {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	heading := regexp.MustCompile("^## (Gauge|Counter|Histogram)s$")
	row := regexp.MustCompile("^\\| `([a-z_]+)(?:{([a-z_,]+)})?` \\|")
	table := make(map[string]family)
	kind := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		if found := heading.FindStringSubmatch(s.Text()); found != nil {
			kind = strings.ToLower(found[1])
		}
		found := row.FindStringSubmatch(s.Text())
		if found == nil {
			continue
		}
		d := family{Type: kind}
		if found[2] != "" {
			d.Labels = strings.Split(found[2], ",")
		}
		slices.Sort(d.Labels)
		table[found[1]] = d
	}
	if len(table) < 20 {
		t.Fatalf("read only %d rows of the tables in docs/reference/metrics.md", len(table))
	}
	return table
}

func TestValuesAreThoseMeasured(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{ServiceVersion: "v1.2.3"})
	measureEverything(t, tel.Metrics())
	text := scrape(t, tel, "")
	for _, want := range []string{
		`fencepost_lock_held{mode="exclusive"} 3`,
		`fencepost_lock_waiting{mode="exclusive"} 2`,
		`fencepost_lock_oldest_wait_seconds 90`,
		`fencepost_lock_wait_duration_seconds_bucket{contended="true",outcome="granted",le="0.05"} 0`,
		`fencepost_lock_wait_duration_seconds_bucket{contended="true",outcome="granted",le="0.1"} 1`,
		`fencepost_lock_hold_duration_seconds_bucket{end="released",mode="shared",le="86400"} 1`,
		`fencepost_lock_expirations_total{reason="holder_gone"} 2`,
		`fencepost_lock_expirations_total{reason="waiter_gone"} 5`,
		`fencepost_queue_depth_max 7`,
		`fencepost_lock_handover_duration_seconds_sum 0.003`,
		`fencepost_lock_acquire_keys_sum{outcome="granted"} 3`,
		`fencepost_lease_renew_slack_bucket{le="0.6"} 0`,
		`fencepost_lease_renew_slack_bucket{le="0.7"} 1`,
		`fencepost_lock_revocations_total{actor="tenant-admin"} 1`,
		`fencepost_lock_revocations_total{actor="admin"} 0`,
		`fencepost_lock_stale_writes_total 1`,
		`fencepost_lock_renewals_total{outcome="late"} 1`,
		`fencepost_lock_order_contradictions_total 3`,
		`fencepost_events_dropped_total 4`,
		`fencepost_log_dropped_total 0`,
		`fencepost_replicas 3`,
		`fencepost_webhook_backlog 6`,
		`fencepost_webhook_oldest_age_seconds 90`,
		`fencepost_webhook_lag_seconds 7`,
		`fencepost_webhook_attempts_total{outcome="failed"} 1`,
		`fencepost_webhook_attempts_total{outcome="delivered"} 0`,
		`fencepost_webhook_duration_seconds_count{outcome="failed"} 1`,
		`fencepost_stream_clients 1`,
		`fencepost_stream_dropped_total 1`,
		`fencepost_stream_establish_duration_seconds_count 2`,
		`fencepost_quota_usage{quota="held_locks"} 7`,
		`fencepost_quota_refusals_total{quota="waiting"} 1`,
		`fencepost_store_used_bytes 5.24288e+06`,
		`fencepost_store_quota_bytes 1.073741824e+09`,
		`fencepost_principals_refused{file="principals"} 1`,
		`fencepost_principals_refused{file="oidc_principals"} 0`,
		`fencepost_lock_renewals_total{outcome="lost"} 1`,
		`fencepost_lock_renewals_total{outcome="ok"} 0`,
		`fencepost_store_operation_duration_seconds_sum{operation="txn",outcome="ok"} 0.001`,
		`fencepost_store_batch_size_sum 12`,
		`fencepost_feed_restarts_total 1`,
		`fencepost_http_request_duration_seconds_count{method="POST",route="/locks/:name",status="2xx",wait="true"} 1`,
		`fencepost_http_requests_in_flight 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestSilentFeedFallsBehind(t *testing.T) {
	unsetStandard(t)
	bubble.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		tel.Metrics().FeedLag(1500 * time.Millisecond)
		<-time.After(10 * time.Second)
		if text := scrape(t, tel, ""); !strings.Contains(text, "fencepost_feed_lag_seconds 11.5\n") {
			t.Errorf("not 11.5 s behind, 10 s after being 1.5 s behind:\n%s", text)
		}
		tel.Metrics().FeedLag(0)
		if text := scrape(t, tel, ""); !strings.Contains(text, "fencepost_feed_lag_seconds 0\n") {
			t.Errorf("still behind after catching up:\n%s", text)
		}
	})
}

func TestGaugesWithoutSourceAreLeftOut(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{})
	leftOut := func(names ...string) {
		t.Helper()
		text := scrape(t, tel, "")
		for _, name := range names {
			if strings.Contains(text, name) {
				t.Errorf("%s is reported although nobody told it", name)
			}
		}
	}
	queues := []string{
		"fencepost_lock_held", "fencepost_lock_waiting", "fencepost_lock_oldest_wait",
		"fencepost_store_revision", "fencepost_replicas",
	}
	leftOut(append(queues, "fencepost_feed_lag")...)
	tel.Metrics().ObserveQueues(func() (telemetry.Queues, bool) {
		return telemetry.Queues{ByMode: map[string]telemetry.QueueCounts{"exclusive": {}}}, false
	})
	tel.Metrics().ObserveReplicas(func() (int, bool) { return 0, false })
	leftOut(queues...)
}

// Whatever a client or a programmer passes, the number of series is bounded.
func TestUnknownWordsAreOther(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{})
	m, ctx := tel.Metrics(), t.Context()
	for i := range 3000 {
		odd := strings.Repeat("x", i+1)
		m.Waited(ctx, odd, false, time.Second)
		m.Held(ctx, odd, odd, time.Second)
		m.Held(ctx, "shared", odd, time.Second)
		m.Acquired(ctx, odd, i)
		m.Revoked(ctx, odd)
		m.WebhookAttempted(ctx, odd, time.Second)
		m.QuotaRefused(ctx, odd)
		m.Renewed(ctx, odd)
		m.StoreOperation(ctx, odd, odd, time.Second)
		m.RequestStarted()
		m.RequestDone(ctx, odd, odd, i, false, time.Second)
	}
	m.RequestStarted()
	m.RequestDone(ctx, "GET", "", 404, false, time.Second)

	families := scrapeFamilies(t, tel)
	for name, most := range map[string]int{
		"fencepost_lock_wait_duration_seconds":       1,
		"fencepost_lock_hold_duration_seconds":       2,
		"fencepost_lock_acquire_keys":                1,
		"fencepost_lock_revocations_total":           3,
		"fencepost_webhook_attempts_total":           7,
		"fencepost_quota_refusals_total":             14,
		"fencepost_lock_renewals_total":              5,
		"fencepost_store_operation_duration_seconds": 101,
		"fencepost_http_request_duration_seconds":    1001,
	} {
		if got := len(families[name].GetMetric()); got > most || got == 0 {
			t.Errorf("%s has %d series, want 1 to %d", name, got, most)
		}
	}
	if text := scrape(t, tel, ""); strings.Contains(text, "otel_metric_overflow") {
		t.Error("the SDK's own limit was reached")
	}
}

func TestConcurrentNewWords(t *testing.T) {
	unsetStandard(t)
	tel := setup(t, telemetry.Config{})
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for _, route := range []string{"/a", "/b", "/c", "/d"} {
				tel.Metrics().RequestStarted()
				tel.Metrics().RequestDone(t.Context(), "GET", route, 200, false, time.Millisecond)
			}
		}()
	}
	for range 8 {
		<-done
	}
	series := scrapeFamilies(t, tel)["fencepost_http_request_duration_seconds"].GetMetric()
	if len(series) != 4 {
		t.Fatalf("%d series, want 4", len(series))
	}
	for _, s := range series {
		if got := s.GetHistogram().GetSampleCount(); got != 8 {
			t.Errorf("%v: %d requests, want 8", s.GetLabel(), got)
		}
	}
}

func TestExemplarsLeadToSampledTraces(t *testing.T) {
	unsetStandard(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", startCollector(t).URL+"/v1/traces")
	tel := setup(t, telemetry.Config{})
	ctx, span := tel.Tracer().Start(t.Context(), "a-span")
	defer span.End()
	tel.Metrics().Waited(ctx, telemetry.WaitGranted, false, time.Second)
	text := scrape(t, tel, "application/openmetrics-text; version=1.0.0")
	if id := span.SpanContext().TraceID().String(); !strings.Contains(text, `trace_id="`+id) {
		t.Errorf("no exemplar with trace %s in\n%s", id, text)
	}
}
