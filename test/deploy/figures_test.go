package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fencepost/fencepost/test/rig"
)

const secret = "a secret for bearer tokens, of more than 32 bytes"

// figures are names of Prometheus' with the labels that it has anywhere.
type figures map[string]map[string]bool

// others are labels that Prometheus adds, or that only some series of a histogram have.
var others = []string{"instance", "namespace", "job", "le"}

// elsewhere are figures of programs that are not at hand here, that of
// deploy/systemd/fencepost-backup, and those of files of TLS and of principals, which tests of
// cmd/api ask for by these names.
var elsewhere = []string{
	"kube_cronjob_status_last_successful_time", "fencepost_backup_last_success_timestamp_seconds",
	"fencepost_tls_certificate_expiry_seconds", "fencepost_tls_files_refused",
	"fencepost_principals_refused",
	// of what traffic does not do; telemetry asks for them
	"fencepost_lock_handover_duration_seconds_bucket", "fencepost_webhook_duration_seconds_bucket",
}

// selected finds names with what is in braces behind them; grouped what a sum is kept by.
var (
	selected = regexp.MustCompile(
		`\b((?:fencepost|etcd|go|process|kube|container)_[a-z0-9_]+)(?:\{([^}]*)\})?`,
	)
	label   = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouped = regexp.MustCompile(`\b(?:by|without|on)\s*\(([^)]*)\)`)
)

// missing says what of an expression is nowhere to be seen.
func (f figures) missing(expression string) []string {
	var all []string
	if strings.Contains(expression, `otel_metric_overflow="true", __name__=~"fencepost_.+"`) {
		return nil // no figure shows a worker that works as it should
	}
	names := selected.FindAllStringSubmatch(expression, -1)
	if len(names) == 0 {
		return []string{"a figure"}
	}
	seen, elsewhereToo := map[string]bool{}, false // its labels are not known here
	for _, m := range names {
		labels, ok := f[m[1]]
		switch {
		case slices.Contains(elsewhere, m[1]):
			elsewhereToo, ok = true, false
		case !ok:
			all = append(all, m[1])
		}
		for name := range labels {
			seen[name] = true
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if ok && !labels[l[1]] && !slices.Contains(others, l[1]) {
				all = append(all, m[1]+"{"+l[1]+"}")
			}
		}
	}
	for _, m := range grouped.FindAllStringSubmatch(expression, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if name = strings.TrimSpace(name); !elsewhereToo && !seen[name] &&
				!slices.Contains(others, name) {
				all = append(all, "by ("+name+")")
			}
		}
	}
	return all
}

// add reads what a program shows at a URL.
func (f figures) add(t *testing.T, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range families {
		labels := map[string]bool{}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		f[name] = labels
		if family.GetType().String() == "HISTOGRAM" {
			f[name+"_bucket"], f[name+"_sum"], f[name+"_count"] = labels, labels, labels
		}
	}
}

// rule is an alert of the rule file.
type rule struct{ name, expression, runbook string }

// rules reads the alerts, each of whose fields stands in a line of its own.
func rules(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for line := range strings.Lines(text(t, "deploy/prometheus/fencepost.yaml")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch last := len(all) - 1; key {
		case "- alert":
			all = append(all, rule{name: value})
		case "expr":
			all[last].expression = value
		case "runbook_url":
			all[last].runbook = value
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d alerts were found; this test would check nothing", len(all))
	}
	return all
}

// expressions finds what the dashboard asks Prometheus.
func expressions(t *testing.T) []string {
	t.Helper()
	var all []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for key, e := range v {
				if s, ok := e.(string); ok && (key == "expr" || key == "definition") {
					all = append(all, s)
				}
				walk(e)
			}
		}
	}
	for _, path := range under(t, "deploy/grafana", ".json") {
		var board any
		if err := json.Unmarshal([]byte(text(t, path)), &board); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		walk(board)
	}
	if len(all) < 20 {
		t.Fatalf("the dashboard asks %d times; this test would check nothing", len(all))
	}
	return all
}

// asked: what the dashboard and the alerts ask for is what a server and its store show after
// some traffic.
func asked(t *testing.T, api, store string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	etcd, err := rig.StartEtcd(ctx, rig.EtcdConfig{Dir: dir, Binary: store})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, etcd)
	r, err := rig.StartReplica(ctx, rig.ReplicaConfig{
		Binary: api, Store: etcd.Store(), DataDir: filepath.Join(dir, "replica"), Secret: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, r)
	inside, err := rig.StartReplica(
		ctx, rig.ReplicaConfig{Binary: api, DataDir: filepath.Join(dir, "embedded"), Secret: secret},
	)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, inside)
	traffic(ctx, t, r)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for { // holds are counted a moment after their release
		shown := figures{}
		shown.add(t, inside.URL()+"/metrics") // first: what the other one shows too is as it is there
		shown.add(t, r.URL()+"/metrics")
		shown.add(t, "http://"+etcd.Endpoints()[0]+"/metrics")
		complaints := shown.complaints(t)
		if complaints == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(strings.Join(complaints, "\n"))
		}
	}
}

// complaints says what the dashboard and the alerts ask for in vain.
func (f figures) complaints(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, rule := range rules(t) {
		if missing := f.missing(rule.expression); missing != nil {
			all = append(all, fmt.Sprintf("%s asks for %q: %s", rule.name, missing, rule.expression))
		}
	}
	for _, e := range expressions(t) {
		if missing := f.missing(e); missing != nil {
			all = append(all, fmt.Sprintf("the dashboard asks for %q: %s", missing, e))
		}
	}
	return all
}

func closeAfter(t *testing.T, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// traffic has a lock taken, refused, renewed, released, and renewed too late.
func traffic(ctx context.Context, t *testing.T, r *rig.Replica) {
	t.Helper()
	bearer, err := r.Token("acme", "locks:read locks:write", "deploy")
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, path, token string, want int) (answer struct{ Token string }) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, r.URL()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Lock-Token", token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%s %s: %d, %v, %s", method, path, resp.StatusCode, err, body)
		}
		_ = json.Unmarshal(body, &answer) // there is none of a 204
		return answer
	}
	held := call(http.MethodPost, "/locks/orders:42", "", http.StatusCreated).Token
	call(http.MethodPost, "/locks/orders:42", "", http.StatusLocked)
	call(http.MethodPut, "/locks/orders:42/renew", held, http.StatusOK)
	call(http.MethodDelete, "/locks/orders:42", held, http.StatusNoContent)
	call(http.MethodPut, "/locks/orders:42/renew", held, http.StatusGone)
}

// TestRunbook: each alert leads to its entry, and no entry is about an alert that is gone.
func TestRunbook(t *testing.T) {
	t.Parallel()
	book := text(t, "docs/operate/runbook.md")
	alerts := map[string]bool{}
	for _, r := range rules(t) {
		alerts[r.name] = true
		_, anchor, _ := strings.Cut(r.runbook, "docs/operate/runbook.md#")
		if anchor != strings.ToLower(r.name) {
			t.Errorf("%s leads to %q", r.name, r.runbook)
		}
		_, entry, ok := strings.Cut(book, "\n## "+r.name+"\n")
		entry, _, _ = strings.Cut(entry, "\n## ")
		if !ok || !strings.Contains(entry, "**See.**") || !strings.Contains(entry, "**Do.**") {
			t.Errorf("docs/operate/runbook.md does not say of %s how to see it and what to do", r.name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(book, -1) {
		if !alerts[m[1]] {
			t.Errorf("docs/operate/runbook.md has an entry for %s, which is no alert", m[1])
		}
	}
}
