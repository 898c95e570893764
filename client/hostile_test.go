package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/api"
)

const theToken = "fp1_secret"

// replies answers requests by their methods.
type replies map[string]func() (status int, body io.Reader)

func (r replies) RoundTrip(req *http.Request) (*http.Response, error) {
	status, body := r[req.Method]()
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

func reply(status int, text string) func() (int, io.Reader) {
	return func() (int, io.Reader) { return status, strings.NewReader(text) }
}

const grant = `{"id":"e1","state":"held","token":"` + theToken + `","ttl_seconds":30,"fence":7`

func connected(t *testing.T, r replies) *Client {
	t.Helper()
	c, err := New(Config{
		URLs: []string{"http://a"}, Token: Bearer("T"), HTTP: &http.Client{Transport: r}, RetryFor: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNothingPrintsTheTokenOfALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, replies{
			http.MethodPost: reply(http.StatusCreated, grant+"}"),
			http.MethodGet: reply(http.StatusServiceUnavailable,
				`{"code":"draining","title":"draining","entry":`+grant+`}}`),
		})
		held, err := c.Lock(t.Context(), "a", Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Look(t.Context(), "a")
		var problem *Error
		if !errors.As(err, &problem) {
			t.Fatal(err)
		}
		text, _ := json.Marshal([]any{held, problem})
		all := fmt.Sprintf("%s %v %+v %#v %v %+v", text, held, held, held, problem, problem)
		if strings.Contains(all, theToken) {
			t.Error(all)
		}
		_ = c.Close()
	})
}

func TestACallbackMayCloseTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, replies{
			http.MethodPost: reply(http.StatusCreated, grant+"}"),
			http.MethodPut:  reply(http.StatusOK, grant+`,"release_requested":{"by":"w2","since":"1"}}`),
		})
		closed := make(chan struct{})
		_, err := c.Lock(t.Context(), "a", Options{OnReleaseRequested: func(api.ReleaseRequested) {
			_ = c.Close()
			close(closed)
		}})
		if err != nil {
			t.Fatal(err)
		}
		<-closed
	})
}

func TestALeaderThatPanicsResigns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := false
		c := connected(t, replies{
			http.MethodPost: reply(http.StatusCreated, grant+"}"),
			http.MethodDelete: func() (int, io.Reader) {
				released = true
				return http.StatusNoContent, http.NoBody
			},
		})
		func() {
			defer func() { _ = recover() }()
			_ = c.Lead(t.Context(), "a", Options{}, func(context.Context, *Held) error { panic("no") })
		}()
		if !released {
			t.Error("the lock is still held")
		}
		_ = c.Close()
	})
}

var line = "data: " + strings.Repeat("x", 1017) + "\n"

// endless is a stream of one event that has no end.
type endless struct{ sent int }

func (e *endless) Read(p []byte) (int, error) {
	if e.sent > 16*maxEvent {
		return 0, errors.New("a client reads on")
	}
	for i := range p {
		p[i] = line[(e.sent+i)%len(line)]
	}
	e.sent += len(p)
	return len(p), nil
}

func TestAnEventIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body := new(endless)
		calls := 0
		c := connected(t, replies{http.MethodGet: func() (int, io.Reader) {
			if calls++; calls == 2 {
				cancel()
			}
			return http.StatusOK, body
		}})
		for _, err := range c.Events(ctx, EventFilter{}) {
			if CodeOf(err) != Cancelled {
				t.Errorf("told: %v", err)
			}
		}
		if body.sent > 4*maxEvent {
			t.Errorf("%d bytes of an event were read", body.sent)
		}
		_ = c.Close()
	})
}
