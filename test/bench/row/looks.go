package row

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bench/side"
)

const (
	longestLook = 200 * time.Millisecond

	crowdedLocks   = 1000 // on which entries wait
	closedPatterns = 20
	actionsOnFile  = 160 // closures that were ended again, beside those that stand
	learntOrders   = 50  // pairs of locks that were taken in both orders
	ownedWebhooks  = 20
	toldGrants     = 100 // each webhook has a pending delivery of each
)

// look is a page that is asked for.
type look struct {
	what, path string
	has        string // what must be in the answer, so that it is none of nothing
	stream     bool   // which has begun when its head has come
}

// runS11 measures how long the first page of each list takes, at a server with many locks.
func runS11(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	s, err := b.serve(ctx, embedded, &cs, toLoopback...)
	if err != nil {
		return nil, err
	}
	l := &lookBench{bench: b, served: s}
	if err := l.fill(ctx, &cs); err != nil {
		return nil, err
	}
	looks, err := l.looks(ctx)
	if err != nil {
		return nil, err
	}
	took := map[string]time.Duration{}
	for _, one := range looks {
		if took[one.what], err = l.first(ctx, one); err != nil {
			return nil, fmt.Errorf("%s: %w", one.what, err)
		}
		b.logf("%-40s %s", one.what, millis(took[one.what]))
	}
	return l.outcomes(looks, took), nil
}

// lookBench is the row.
type lookBench struct {
	*bench
	*served
	operator string // the bearer token
	lines    http.Client
}

// fill has something for every list to show.
func (l *lookBench) fill(ctx context.Context, cs *closers) (err error) {
	if l.operator, err = l.Token("operations", "admin", "operator"); err != nil {
		return err
	}
	if err := l.bench.fill(ctx, l.replica, cs); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{l.queue, l.learn, l.close, l.subscribe} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// queue has entries wait for some of the locks.
func (l *lookBench) queue(ctx context.Context) error {
	body := fmt.Appendf(nil, `{"async":true,"ttl_seconds":%d,"wait_seconds":%d}`, longTTL, longTTL)
	name := func(i int) string { return heldLock(i % min(crowdedLocks, l.Entries)) }
	clients := l.load.Clients(manyClients)
	if err := askAll(ctx, clients, l.Waiters, name, body, func(side.Ticket) {}); err != nil {
		return err
	}
	return awaitFigure(ctx, l.replica, waitingFigure, float64(l.Waiters))
}

// learn has workers take pairs of locks in contradicting orders.
func (l *lookBench) learn(ctx context.Context) error {
	token, err := l.Token(tenant, "locks:write", "orderly")
	if err != nil {
		return err
	}
	for turn := range 2 {
		for i := range learntOrders {
			pair := []string{fmt.Sprintf("order:%d:a", i), fmt.Sprintf("order:%d:b", i)}
			for _, name := range []string{pair[turn], pair[1-turn]} {
				body := map[string]any{
					"holder":       fmt.Sprintf("taker-%d-%d", i, turn),
					"ttl_seconds":  2,
					"wait_seconds": 30,
				}
				if err := l.post(ctx, "/locks/"+name, token, body, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// close closes unused locks, and opens most of them again.
func (l *lookBench) close(ctx context.Context) error {
	body := map[string]any{
		"tenant": tenant,
		"until":  time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		"reason": "the benchmark looks at it",
	}
	for i := range closedPatterns + actionsOnFile/2 {
		body["locks"] = fmt.Sprintf("none:%d:*", i)
		var made struct{ ID string }
		if err := l.post(ctx, "/admin/closures", l.operator, body, &made); err != nil {
			return err
		}
		if i < closedPatterns {
			continue
		}
		if err := l.send(
			ctx, http.MethodDelete, "/admin/closures/"+made.ID, l.operator, map[string]any{}, nil,
		); err != nil {
			return err
		}
	}
	return nil
}

// subscribe makes webhooks whose receiver does not answer, with pending deliveries.
func (l *lookBench) subscribe(ctx context.Context) error {
	token, err := l.Token(tenant, "locks:write webhooks:write", "told")
	if err != nil {
		return err
	}
	for i := range ownedWebhooks {
		body := map[string]any{
			"url":    fmt.Sprintf("http://127.0.0.1:1/%d", i),
			"events": []string{"lock.acquired"},
			"locks":  "told:*",
		}
		if err := l.post(ctx, "/webhooks", token, body, nil); err != nil {
			return err
		}
	}
	for i := range toldGrants {
		if err := l.post(
			ctx, fmt.Sprintf("/locks/told:%d", i), token, map[string]any{"ttl_seconds": longTTL}, nil,
		); err != nil {
			return err
		}
	}
	return nil
}

// looks are those that a tenant and the dashboard take.
func (l *lookBench) looks(ctx context.Context) ([]look, error) {
	var hooks struct{ Webhooks []struct{ ID string } }
	if err := getJSON(ctx, l.URL()+"/admin/webhooks?tenant="+tenant, l.operator, &hooks); err != nil {
		return nil, err
	}
	if len(hooks.Webhooks) == 0 {
		return nil, errors.New("no webhook is listed")
	}
	const held = `"name":"bench:held:`
	of := "/admin/webhooks/" + tenant + "/" + hooks.Webhooks[0].ID
	all := []look{
		{what: "GET /locks", path: "/locks", has: held},
		{what: "holder", path: "/admin/holders?tenant=" + tenant + "&holder=taker-0-1", has: `"holder"`},
		{what: "blocking", path: "/admin/blocking", has: `"trees":[{`},
		{what: "audit", path: "/admin/audit", has: `"locks.close"`},
		{what: "audit of a tenant", path: "/admin/audit?tenant=" + tenant, has: `"locks.open"`},
		{what: "closures", path: "/admin/closures", has: `"none:0:*"`},
		{what: "webhooks", path: "/admin/webhooks", has: `"webhooks":[{`},
		{what: "webhook", path: of, has: `"id"`},
		{what: "deliveries", path: of + "/deliveries", has: `"deliveries":[{`},
		{what: "deadlocks", path: "/admin/deadlocks", has: `"deadlocks"`},
		{what: "lock order", path: "/admin/lock-order", has: `"order:`},
		{what: "events", path: "/admin/events", stream: true},
		{what: "series", path: "/admin/series", has: `"whole"`},
		{what: "heat map", path: "/admin/heatmap", has: `"rows"`},
		{what: "lock", path: "/admin/locks/" + tenant + "/" + heldLock(0), has: heldLock(0)},
		{
			what: "history of a lock", path: "/admin/locks/" + tenant + "/" + heldLock(0) + "/history",
			has: `"`,
		},
		{what: "overview", path: "/admin/overview", has: `"held"`},
		{what: "tenants", path: "/admin/tenants", has: `"` + tenant + `"`},
	}
	for _, query := range []string{
		"", "sort=-name", "sort=waiters", "sort=-waiters", "sort=oldest_wait", "sort=-oldest_wait",
		"sort=held_for", "sort=-held_for", "sort=utilization", "sort=-utilization", "search=held:9",
		"state=held", "state=contended", "tenant=" + tenant, "search=held:9&sort=-waiters",
	} {
		all = append(all, look{
			what: strings.TrimSpace("locks " + query), path: "/admin/locks?" + query, has: `"locks":[{`,
		})
	}
	return all, nil
}

// first measures one look, over a connection that is open.
func (l *lookBench) first(ctx context.Context, of look) (time.Duration, error) {
	token, err := l.operator, error(nil)
	if of.path == "/locks" {
		if token, err = l.Token(tenant, "locks:read", "reader"); err != nil {
			return 0, err
		}
	}
	if err := l.send(ctx, http.MethodGet, "/healthz", "", nil, nil); err != nil {
		return 0, err
	}
	// what was said a moment ago is over, and a server that was started is calm
	if err := store.Pause(ctx, time.Second); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := l.request(ctx, http.MethodGet, of.path, token, nil)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	resp, err := l.lines.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var text []byte
	if !of.stream {
		text, err = io.ReadAll(resp.Body)
	}
	took := time.Since(start)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(of.has))) {
		err = fmt.Errorf("%s without %q: %.200s", resp.Status, of.has, text)
	}
	return took, err
}

func (l *lookBench) post(ctx context.Context, path, token string, body, into any) error {
	return l.send(ctx, http.MethodPost, path, token, body, into)
}

// send sends a request that must succeed.
func (l *lookBench) send(ctx context.Context, method, path, token string, body, into any) error {
	req, err := l.request(ctx, method, path, token, body)
	if err != nil {
		return err
	}
	resp, err := l.lines.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s %.200s", method, path, resp.Status, text)
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (l *lookBench) request(
	ctx context.Context,
	method, path, token string,
	body any,
) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.URL()+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

func (l *lookBench) outcomes(looks []look, took map[string]time.Duration) []Outcome {
	on := fmt.Sprintf(
		"first look at %s locks and %s waiters: ", number(float64(l.Entries)), number(float64(l.Waiters)),
	)
	slowest := slices.MaxFunc(looks[1:], func(a, b look) int {
		return cmp.Compare(took[a.what], took[b.what])
	})
	line := func(of look, what string) Outcome {
		return Outcome{
			ID: "S11", What: on + what, Ours: millis(took[of.what]), Bar: "≤ " + millis(longestLook),
			Met: verdict(took[of.what] <= longestLook),
		}
	}
	return []Outcome{
		line(looks[0], looks[0].what),
		line(slowest, fmt.Sprintf(
			"the slowest of %d of the dashboard's, %s", len(looks)-1, slowest.what,
		)),
	}
}
