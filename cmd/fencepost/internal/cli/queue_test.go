package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/client"
)

// queueServer answers each look with a queue, unless it is down. It stands in for the network:
// connections would keep the clock of a bubble from moving.
type queueServer struct{ down atomic.Bool }

func (s *queueServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.down.Load() {
		return nil, errors.New("connection refused")
	}
	const look = `{"name":"x","waiting":3,"holders":[{"holder":"w1","fence":7,"since":"1999-12-31T00:00:00.000Z"}],` +
		`"waiters":[{"position":1,"holder":"w2"},{"position":2,"holder":"me"}]}`
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(look)),
	}, nil
}

// TestLogSaysEachMinuteWhyTheWaitGoesOn: most locks are granted before the first line.
func TestLogSaysEachMinuteWhyTheWaitGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &queueServer{}
		to, err := client.New(client.Config{
			URLs: []string{"http://a"}, Token: client.Bearer("T"), HTTP: &http.Client{Transport: server},
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		lines := make(chan string, 100)
		go logQueue(ctx, to, []string{"x"}, "me", func(format string, args ...any) {
			lines <- fmt.Sprintf(format, args...)
		})
		const why = "waiting for x: position 2 of 3, held by w1 for 1d0h (fence 7)"
		for _, step := range []struct {
			after time.Duration
			down  bool
			want  string // the line, if there is one
		}{
			{after: 59 * time.Second},
			{after: 2 * time.Second, want: why},
			{after: time.Minute, want: why},
			{after: 65 * time.Second, down: true, want: noAnswer}, // and the time of a look
			{after: time.Minute, want: why},
		} {
			server.down.Store(step.down)
			<-time.After(step.after) // by the clock of the bubble
			synctest.Wait()
			said := ""
			if n := len(lines); n > 0 {
				said = <-lines
			}
			if said != step.want || len(lines) > 0 {
				t.Errorf("%s later it says %q and %d more, not %q", step.after, said, len(lines), step.want)
			}
		}
		cancel()
		synctest.Wait()
	})
}
