// Command worker is the Go worker of the contest, see test/contest/README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

var errStale = errors.New("the resource knows a greater fence")

// round is what the worker prints of one.
type round struct {
	Lock    string   `json:"lock"`
	Fence   uint64   `json:"fence"`
	Outcome string   `json:"outcome"`
	Left    *float64 `json:"left,omitempty"`
	Detail  string   `json:"detail,omitempty"`
}

func main() {
	seconds, err := strconv.ParseFloat(os.Getenv("TTL"), 64)
	if err != nil {
		fatal(err)
	}
	c, err := client.New(client.Config{
		URLs:  strings.Split(os.Getenv("FENCEPOST_URL"), ","),
		Token: client.Bearer(os.Getenv("FENCEPOST_TOKEN")), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fatal(err)
	}
	w := &worker{client: c, ttl: time.Duration(seconds * float64(time.Second))}
	w.margin = max(w.ttl/10, 250*time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	locks := strings.Split(os.Getenv("LOCKS"), ",")
	out := json.NewEncoder(os.Stdout)
	for ctx.Err() == nil {
		r := w.round(ctx, locks[rand.IntN(len(locks))])
		if ctx.Err() == nil {
			_ = out.Encode(r)
		}
	}
	_ = c.Close()
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "worker:", err)
	os.Exit(1)
}

type worker struct {
	client      *client.Client
	ttl, margin time.Duration
}

// round adds one to what the resource has, under the lock.
func (w *worker) round(ctx context.Context, name string) round {
	r := round{Lock: name, Outcome: "written"}
	options := client.Options{TTL: w.ttl, Wait: 20 * time.Second}
	err := w.client.Do(ctx, name, options, func(ctx context.Context, held *client.Held) error {
		r.Fence = held.Fence()
		err := w.work(ctx, held)
		if err != nil {
			left := w.left(held)
			r.Left = &left
		}
		return err
	})
	switch {
	case err == nil:
		return r
	case errors.Is(err, errStale):
		r.Outcome = "stale"
	case client.CodeOf(err) == api.Lost:
		r.Outcome = "lost"
	default:
		r.Outcome = "failed"
	}
	r.Detail = err.Error()
	return r
}

// left are the seconds to the end of the lease, as the client reckons.
func (w *worker) left(held *client.Held) float64 { return (held.Left() + w.margin).Seconds() }

func (w *worker) work(ctx context.Context, held *client.Held) error {
	resource := os.Getenv("RESOURCE") + "/" + held.Name() + "?fence=" + fmt.Sprint(held.Fence())
	status, text, err := send(ctx, http.MethodGet, resource, "")
	switch {
	case err != nil:
		return err
	case status == http.StatusConflict:
		return errStale
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	select {
	case <-time.After(rand.N(w.ttl / 2)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := held.Check(); err != nil {
		return err
	}
	resource += fmt.Sprintf("&left=%.3f", w.left(held))
	status, text, err = send(ctx, http.MethodPut, resource, strconv.Itoa(value+1))
	switch {
	case err != nil:
		return err
	case status == http.StatusConflict:
		return errStale
	case status != http.StatusNoContent:
		return fmt.Errorf("the resource answers %d: %s", status, text)
	}
	return nil
}

// send returns the cause if ctx ends, which is why the lock is lost.
func send(ctx context.Context, method, url, body string) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", errors.Join(err, context.Cause(ctx))
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), errors.Join(err, context.Cause(ctx))
}
