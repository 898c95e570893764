package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/api"
)

// roundTrip answers requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respond(status int, text string) *http.Response {
	body := io.NopCloser(strings.NewReader(text))
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: body}
}

func TestBaseURLsAreCheckedAndNeverQuoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" http://a/ ": "http://a", "http://a, https://b/x/ ,": "http://a https://b/x", ",http://a": "http://a",
	} {
		c, err := New(Config{URLs: []string{text}, Token: Bearer("T")})
		if err != nil || strings.Join(c.config.URLs, " ") != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"": "no URL", " , ": "no URL", "a": "URL 1", "http://a,ftp://b": "URL 2", "http://": "URL 1",
		"http://user:hunter2@a": "URL 1", "http://a?hunter2": "URL 1", "http://a#hunter2": "URL 1",
		"http://a:x/hunter2": "URL 1", "http://:80": "URL 1",
	} {
		_, err := New(Config{URLs: []string{text}, Token: Bearer("T")})
		message := textOf(err)
		if !strings.Contains(message, want) || strings.Contains(message, "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestABearerTokenIsTrimmedAndCheckedWhenAClientIsMade(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", " \n", "hunter2\nb", "hunter2 b", "hunter2é", "hunter2\x00"} {
		_, err := New(Config{URLs: []string{"http://a"}, Token: Bearer(token)})
		message := textOf(err)
		if !strings.Contains(message, "bearer token") || strings.Contains(message, "hunter2") {
			t.Errorf("%q: %v", token, err)
		}
	}
	var sent string
	c, err := New(Config{
		URLs: []string{"http://a"}, Token: Bearer(" T\r\n"),
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r.Header.Get("Authorization")
			return respond(http.StatusOK, "{}"), nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Look(t.Context(), "a"); err != nil || sent != "Bearer T" {
		t.Errorf("%q is sent: %v", sent, err)
	}
}

// TestWhatCannotBeSentFailsAtOnce: and no request is sent.
func TestWhatCannotBeSentFailsAtOnce(t *testing.T) {
	t.Parallel()
	lock := func(o Options) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error {
			_, err := c.Lock(ctx, "a", o)
			return err
		}
	}
	call := func(header http.Header, body any) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error {
			return c.Call(ctx, http.MethodPut, "/a", header, body, nil)
		}
	}
	for name, c := range map[string]struct {
		token string
		trace string
		do    func(context.Context, *Client) error
	}{
		"token":  {token: "a\nb", do: lock(Options{})},
		"trace":  {trace: "a\nb", do: lock(Options{})},
		"ttl":    {do: lock(Options{TTL: -1})},
		"wait":   {do: lock(Options{Wait: -time.Second})},
		"margin": {do: lock(Options{Margin: -1})},
		"limit":  {do: lock(Options{Limit: -1})},
		"header": {do: call(http.Header{"a b": {"c"}}, nil)},
		"value":  {do: call(http.Header{"A": {"b", "c\x00"}}, nil)},
		"body":   {do: call(nil, func() {})},
		"adoption": {do: func(ctx context.Context, c *Client) error {
			_, err := c.Adopt(ctx, "a", "t\nt", Options{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := New(Config{
					URLs:  []string{"http://a", "http://b"},
					Token: TokenFunc(func(context.Context) (string, error) { return "T" + c.token, nil }),
					HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
						t.Errorf("sent: %s", r.Method)
						return nil, errors.New("net/http: invalid")
					})},
					Propagate: func(_ context.Context, h http.Header) { h.Set("traceparent", c.trace) },
				})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				err = c.do(t.Context(), client)
				if CodeOf(err) != api.InvalidRequest || time.Since(begun) > 0 {
					t.Errorf("after %v: %v", time.Since(begun), err)
				}
			})
		})
	}
}

func TestTheFirstFailureWarnsAndTheErrorHasItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		fails := true
		c, err := New(Config{
			URLs: []string{"http://a", "http://b"}, Token: Bearer("hunter2"), RetryFor: 3 * time.Second,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if fails {
					return nil, syscall.ECONNREFUSED
				}
				return respond(http.StatusNotFound, "{}"), nil
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		for warnings := 1; warnings < 3; warnings++ {
			for range 2 {
				fails = true
				_, err := c.Look(t.Context(), "x")
				text := err.Error()
				if !errors.Is(err, syscall.ECONNREFUSED) || CodeOf(err) != NoAnswer ||
					!strings.Contains(text, "http://b: connection refused") {
					t.Error(err)
				}
				if strings.Count(log.String(), "level=WARN") != warnings ||
					!strings.Contains(log.String(), "http://a: connection refused") {
					t.Errorf("want %d warnings: %s", warnings, &log)
				}
				if strings.Contains(text+log.String(), "hunter2") {
					t.Errorf("a secret: %v, %s", err, &log)
				}
			}
			fails = false
			_, _ = c.Look(t.Context(), "x")
		}
		_ = c.Close()
	})
}

func TestADeadlineHasTheLastErrorAndItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, replies{
			http.MethodPost: reply(http.StatusCreated, grant+"}"),
			http.MethodPut:  reply(http.StatusServiceUnavailable, `{"code":"draining","title":"shutting down"}`),
		})
		held, err := c.Lock(t.Context(), "a", Options{})
		if err != nil {
			t.Fatal(err)
		}
		<-held.Context().Done()
		err = context.Cause(held.Context())
		var cause *Error
		if CodeOf(err) != api.Lost || !errors.As(err, &cause) || cause.Code != "draining" ||
			!strings.Contains(err.Error(), "a is lost: deadline: no renewal succeeded for 27s: ") ||
			!strings.Contains(err.Error(), "shutting down") {
			t.Error(err)
		}
		_ = c.Close()
	})
}

// TestARefusedHeaderCostsNoLock: a header that cannot be sent for a while is tried again until the
// deadline.
func TestARefusedHeaderCostsNoLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, replies{
			http.MethodPost: reply(http.StatusCreated, grant+"}"), http.MethodPut: reply(http.StatusOK, grant+"}"),
		})
		var broken atomic.Bool
		c.config.Propagate = func(_ context.Context, h http.Header) {
			h.Set("traceparent", map[bool]string{true: "a\nb", false: "a"}[broken.Load()])
		}
		held, err := c.Lock(t.Context(), "a", Options{})
		if err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		<-time.After(20 * time.Second)
		broken.Store(false)
		<-time.After(20 * time.Second)
		if err := held.Check(); err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
}

// TestCloseWaitsForAReleaseWhoseCallerDoesNot: Release returns with its context and is sent.
func TestCloseWaitsForAReleaseWhoseCallerDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Bool
		c := connected(t, replies{
			http.MethodPost: reply(http.StatusCreated, grant+"}"),
			http.MethodDelete: func() (int, io.Reader) {
				<-time.After(time.Second)
				released.Store(true)
				return http.StatusNoContent, http.NoBody
			},
		})
		held, err := c.Lock(t.Context(), "a", Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := held.Release(ctx); CodeOf(err) != Cancelled || released.Load() {
			t.Errorf("released %v: %v", released.Load(), err)
		}
		_ = c.Close()
		if !released.Load() {
			t.Error("Close does not wait for the release")
		}
	})
}

// TestALateGrantOfAClosedClientIsReleased: also if the answer is there when the client closes.
func TestALateGrantOfAClosedClientIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Bool
		var c *Client
		c = connected(t, replies{
			http.MethodPost: func() (int, io.Reader) {
				go c.Close()
				for i := 0; i < 100 && c.calls.Err() == nil; i++ {
					<-time.After(time.Millisecond)
				}
				return http.StatusCreated, strings.NewReader(grant + "}")
			},
			http.MethodDelete: func() (int, io.Reader) {
				released.Store(true)
				return http.StatusNoContent, http.NoBody
			},
		})
		_, err := c.Lock(t.Context(), "a", Options{})
		if CodeOf(err) != Cancelled {
			t.Error(err)
		}
		_ = c.Close()
		if !released.Load() {
			t.Error("the lock is still held")
		}
	})
}

// TestCloseEndsALeader: in its term and in a pause.
func TestCloseEndsALeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, replies{http.MethodPost: reply(http.StatusCreated, grant+"}")})
		led := make(chan error, 1)
		go func() {
			led <- c.Lead(t.Context(), "a", Options{}, func(ctx context.Context, held *Held) error {
				<-ctx.Done()
				if lost := new(LostError); !errors.As(held.Check(), &lost) || lost.Reason != ReasonClosed {
					t.Error(held.Check())
				}
				return nil
			})
		}()
		<-time.After(time.Second)
		begun := time.Now()
		_ = c.Close()
		if err := <-led; CodeOf(err) != Cancelled || time.Since(begun) > 0 {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}
