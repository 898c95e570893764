package row

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// hostileWay is one way in which a tenant does its worst.
type hostileWay struct {
	name    string
	atOnce  int                                            // requests, or connections
	alone   bool                                           // compare with the other tenant alone
	secure  bool                                           // over TLS
	prepare func(context.Context, *attack) error           // before the victim comes; nil is nothing
	attack  func(ctx context.Context, a *attack, i, n int) // the n-th of the i-th at once
}

// attack is the hostile tenant's.
type attack struct {
	client *http.Client
	base   string
	bearer string
	hooks  string       // a bearer token for webhooks
	close  *closers     // of what it begins beside
	sent   atomic.Int64 // requests that were answered, or given up

	making sync.Once
	resets []byte // of a connection of HTTP/2

	refused atomic.Int64 // of these, for the tenant's quota of requests
	made    atomic.Int64 // of these, 201
}

func newAttack(r *replica, cs *closers) (*attack, error) {
	bearer, err := r.Token("hostile", "locks:read locks:write", "worker")
	if err != nil {
		return nil, err
	}
	t := &http.Transport{MaxIdleConnsPerHost: 4096, TLSClientConfig: toOurs()}
	cs.add(func() error {
		t.CloseIdleConnections()
		return nil
	})
	hooks, err := r.Token("hostile", "webhooks:write", "worker")
	return &attack{
		client: &http.Client{Transport: t}, base: r.URL(), bearer: bearer, hooks: hooks, close: cs,
	}, err
}

// limit has an operator set how many requests a second the tenant may make.
func (a *attack) limit(ctx context.Context, r *replica, most int) error {
	admin, err := r.Token("operators", "admin", "operator")
	if err != nil || most == 0 {
		return err
	}
	operator := attack{client: a.client, base: a.base, bearer: admin}
	if _, err := operator.do(
		ctx, http.MethodPut, "/admin/tenants/hostile/quota",
		fmt.Sprintf(`{"requests_per_second":%d}`, most),
	); err != nil {
		return err
	}
	select {
	case <-time.After(time.Second): // within which it holds
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do sends a request and reads what is answered, whatever it is.
func (a *attack) do(
	ctx context.Context,
	method, path, body string,
	headers ...string,
) (token string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+a.bearer)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.client.Do(req)
	a.sent.Add(1)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		a.refused.Add(1)
	}
	if resp.StatusCode == http.StatusCreated {
		a.made.Add(1)
	}
	text, err := io.ReadAll(resp.Body)
	if _, rest, found := bytes.Cut(text, []byte(`"token":"`)); found {
		quoted, _, _ := bytes.Cut(rest, []byte(`"`))
		token = string(quoted)
	}
	return token, err
}

// hostileWays are those that are measured.
func hostileWays(b *bench) []hostileWay {
	metadata := fmt.Sprintf(`{"ttl_seconds":60,"metadata":{"k":%q}}`, strings.Repeat("v", 2000))
	return []hostileWay{
		{
			name:   "many locks",
			atOnce: hostileAtOnce,
			attack: func(ctx context.Context, a *attack, i, n int) {
				_, _ = a.do(ctx, http.MethodPost, fmt.Sprintf("/locks/h:%d:%d", i, n), `{"ttl_seconds":60}`)
			},
		},
		{
			name:    "many waiters",
			atOnce:  min(2000, b.Waiters),
			prepare: holdOne,
			attack: func(ctx context.Context, a *attack, _, _ int) {
				_, _ = a.do(ctx, http.MethodPost, "/locks/held", `{"wait_seconds":40}`)
			},
		},
		{
			name:   "many idempotency keys",
			atOnce: hostileAtOnce,
			attack: func(ctx context.Context, a *attack, i, n int) {
				path := fmt.Sprintf("/locks/h:%d", i)
				if token, _ := a.do(
					ctx, http.MethodPost, path, `{}`, "Idempotency-Key", fmt.Sprintf("%d-%d", i, n),
				); token != "" {
					_, _ = a.do(ctx, http.MethodDelete, path, "", "Lock-Token", token)
				}
			},
		},
		{
			name:   "large metadata",
			atOnce: hostileAtOnce,
			attack: func(ctx context.Context, a *attack, i, n int) {
				_, _ = a.do(ctx, http.MethodPost, fmt.Sprintf("/locks/h:%d:%d", i, n), metadata)
			},
		},
		{name: "sets of 32", atOnce: hostileAtOnce, attack: wideSet},
		{
			name:   "lists of 1 000 locks with many holders",
			atOnce: hostileAtOnce,
			prepare: func(ctx context.Context, a *attack) error {
				return a.fillShared(ctx, min(b.Entries, 100_000))
			},
			attack: func(ctx context.Context, a *attack, _, _ int) {
				_, _ = a.do(ctx, http.MethodGet, "/locks?limit=1000", "")
			},
		},
		{
			name:    "streams without a reader",
			atOnce:  hostileAtOnce,
			prepare: openStreams,
			attack: func(ctx context.Context, a *attack, i, _ int) {
				path := fmt.Sprintf("/locks/h:%d", i)
				if token, _ := a.do(ctx, http.MethodPost, path, metadata); token != "" {
					_, _ = a.do(ctx, http.MethodDelete, path, "", "Lock-Token", token)
				}
			},
		},
		{name: "slow bodies", atOnce: 1000, attack: slowBody},
		{
			name:    "webhooks for all events",
			atOnce:  hostileAtOnce,
			prepare: hookEverything,
			attack: func(ctx context.Context, a *attack, i, _ int) {
				path := fmt.Sprintf("/locks/h:%d", i)
				if token, _ := a.do(ctx, http.MethodPost, path, `{}`); token != "" {
					_, _ = a.do(ctx, http.MethodDelete, path, "", "Lock-Token", token)
				}
			},
		},
		{
			name:   "leases that expire",
			atOnce: hostileAtOnce,
			attack: func(ctx context.Context, a *attack, i, n int) {
				_, _ = a.do(ctx, http.MethodPost, fmt.Sprintf("/locks/h:%d:%d", i, n), `{"ttl_seconds":2}`)
			},
		},
		{name: "streams that restart", atOnce: 90, attack: restartStream},
	}
}

// restartStream follows events for half a second.
func restartStream(ctx context.Context, a *attack, _, _ int) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	_, _ = a.do(ctx, http.MethodGet, "/events", "")
}

// hookEverything has as many webhooks as a tenant may have told of whatever happens to its locks.
// Their receiver answers at once.
func hookEverything(ctx context.Context, a *attack) error {
	to := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	a.close.add(func() error { to.Close(); return nil })
	subscriber := attack{client: a.client, base: a.base, bearer: a.hooks}
	for i := range 100 {
		if _, err := subscriber.do(
			ctx, http.MethodPost, "/webhooks", fmt.Sprintf(`{"url":"%s/%d"}`, to.URL, i),
		); err != nil {
			return err
		}
	}
	if n := subscriber.made.Load(); n != 100 {
		return fmt.Errorf("%d of 100 webhooks could be made", n)
	}
	return nil
}

func holdOne(ctx context.Context, a *attack) error {
	_, err := a.do(ctx, http.MethodPost, "/locks/held", `{"ttl_seconds":600}`)
	return err
}

func wideSet(ctx context.Context, a *attack, i, n int) {
	var names []string
	for k := range 32 {
		names = append(names, fmt.Sprintf(`{"name":"h:%d:%d:%d"}`, i, n, k))
	}
	_, _ = a.do(
		ctx, http.MethodPost, "/locksets", `{"ttl_seconds":60,"locks":[`+strings.Join(names, ",")+`]}`,
	)
}

// fillShared makes so many entries that hold 1 000 locks together.
func (a *attack) fillShared(ctx context.Context, entries int) error {
	var all sync.WaitGroup
	var failed atomic.Int64
	for i := range hostileAtOnce {
		all.Go(func() {
			for n := i; n < entries && ctx.Err() == nil; n += hostileAtOnce {
				if token, _ := a.do(
					ctx, http.MethodPost, fmt.Sprintf("/locks/h:%d", n%1000),
					`{"mode":"shared","ttl_seconds":3600}`,
				); token == "" {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > int64(entries/10) {
		return fmt.Errorf("%d of %d entries could not be made", n, entries)
	}
	return ctx.Err()
}

// openStreams follows events a hundred times, and reads none of them.
func openStreams(ctx context.Context, a *attack) error {
	for range 100 {
		conn, err := a.dial(ctx, "GET /events HTTP/1.1\r\n")
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // it is never read
	}
	return nil
}

// dial begins a request on a connection of its own.
func (a *attack) dial(ctx context.Context, line string) (net.Conn, error) {
	host := strings.TrimPrefix(a.base, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, line+"Host: "+host+"\r\nAuthorization: Bearer "+a.bearer+"\r\n")
	if err == nil && strings.HasPrefix(line, "GET") {
		_, err = io.WriteString(conn, "\r\n")
	}
	return conn, err
}

// slowBody sends a byte of a body now and then, until it is cut off.
func slowBody(ctx context.Context, a *attack, i, n int) {
	conn, err := a.dial(ctx, fmt.Sprintf("POST /locks/h:%d:%d HTTP/1.1\r\n", i, n))
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer a.sent.Add(1)
	_, err = io.WriteString(conn, "Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n{")
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for err == nil {
		select {
		case <-tick.C:
			_, err = io.WriteString(conn, " ")
		case <-ctx.Done():
			return
		}
	}
}

// pace has so many cycles begin in a second.
type pace struct {
	limiter *rate.Limiter
	done    atomic.Int64 // requests
}

func newPace(perSecond float64) *pace {
	return &pace{limiter: rate.NewLimiter(rate.Limit(max(1, perSecond)), 10)}
}

// next waits for the next cycle, and reports whether there is one.
func (p *pace) next(ctx context.Context) bool { return p.limiter.Wait(ctx) == nil }
