package row

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The figures of /metrics that rows read.
const (
	waitingFigure = "fencepost_lock_waiting"
	anyFigure     = "fencepost_lock_oldest_wait_seconds"
)

// gauge returns a figure of the server's /metrics, summed over its labels. It is
// 0 when the server does not show it, as it does with empty queues.
func gauge(ctx context.Context, r *replica, name string) (total float64, err error) {
	resp, err := get(ctx, r.URL()+"/metrics", "")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("read /metrics: %w", err)
	}
	if families[anyFigure] == nil {
		return 0, fmt.Errorf("/metrics has no %s: is telemetry off?", anyFigure)
	}
	for _, m := range families[name].GetMetric() {
		total += m.GetGauge().GetValue()
	}
	return total, nil
}

// waiting returns how many entries wait in all queues.
func waiting(r *replica) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		n, err := gauge(ctx, r, waitingFigure)
		return int(n), err
	}
}

// awaitFigure polls until a figure has the value wanted.
func awaitFigure(ctx context.Context, r *replica, name string, want float64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := gauge(ctx, r, name)
		if err != nil {
			return err
		}
		if got == want {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is %v, not %v: %w", name, got, want, ctx.Err())
		}
	}
}

// countLocks pages through GET /locks of a tenant and returns how many locks it lists.
func countLocks(ctx context.Context, r *replica, tenant string) (int, error) {
	token, err := r.Token(tenant, "locks:read", "auditor")
	if err != nil {
		return 0, err
	}
	seen := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			Locks      []struct{ Name string }
			NextCursor string `json:"next_cursor"`
		}
		query := url.Values{"limit": {"1000"}, "cursor": {cursor}}
		if cursor == "" {
			query.Del("cursor")
		}
		if err := getJSON(ctx, r.URL()+"/locks?"+query.Encode(), token, &page); err != nil {
			return 0, err
		}
		for _, l := range page.Locks {
			seen[l.Name] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			return len(seen), nil
		}
	}
}

func getJSON(ctx context.Context, address, token string, into any) error {
	resp, err := get(ctx, address, token)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

func get(ctx context.Context, address, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: toOurs(),
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(
			fmt.Errorf("GET %s answers %s", req.URL.Path, resp.Status), resp.Body.Close(),
		)
	}
	return resp, nil
}

// checkConditions fails unless the server works as in production: it wants a
// bearer token, and it has its figures. That requests are logged is checked
// after each round, see loggedBytes.
func checkConditions(ctx context.Context, r *replica) error {
	if resp, err := get(ctx, r.URL()+"/locks", ""); err == nil {
		return errors.Join(errors.New("the server lists locks without a bearer token"), resp.Body.Close())
	}
	_, err := gauge(ctx, r, anyFigure)
	return err
}
