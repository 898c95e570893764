package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
)

const (
	requestTimeout = 10 * time.Second // of one attempt that does not wait for a lock
	maxAnswer      = 16 << 20         // bytes

	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
	minPause   = 100 * time.Millisecond // while a lock is held
)

// request is one request, wherever it is sent.
type request struct {
	method, path string
	token        string // of the lock
	key          string // Idempotency-Key
	after        string // Last-Event-ID
	prefer       string // Prefer
	header       http.Header
	body         any // as JSON; nil is none
	timeout      time.Duration
	waits        bool // the server holds it open
}

// strays reports whether a name in the path is empty or of dots: URLs read that as another path.
func (r *request) strays() bool {
	path, _, _ := strings.Cut(r.path, "?")
	return slices.ContainsFunc(strings.Split(path, "/")[1:], func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}

// answer is what a server, or a proxy in front of it, sent.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// open sends a request and returns the response when its head is there.
func (c *Client) open(ctx context.Context, base string, r *request) (*http.Response, error) {
	req, err := c.build(ctx, base, r)
	if err != nil {
		return nil, err
	}
	if r.waits {
		return c.waits.Do(req)
	}
	return c.config.HTTP.Do(req)
}

// build returns the request to send. Its error is final, except that of a [TokenFunc].
func (c *Client) build(ctx context.Context, base string, r *request) (*http.Request, error) {
	text, err := c.config.Token.Token(ctx)
	if err != nil {
		return nil, &again{error: noAnswer(err)}
	}
	bearer, err := tokenOf(text)
	if err != nil {
		return nil, invalid(err.Error())
	}
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, invalid("the body is no JSON: " + err.Error())
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, body)
	if err != nil {
		return nil, invalid("the method or the path cannot be sent")
	}
	if c.config.Propagate != nil {
		c.config.Propagate(ctx, req.Header)
	}
	maps.Copy(req.Header, r.header)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + bearer, "Lock-Token": r.token, "Idempotency-Key": r.key,
		"Prefer":        r.prefer,
		"Last-Event-ID": r.after,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, checkHeader(req.Header)
}

// send sends a request and reads the whole answer. An error means that there is none, and that
// the request may have taken effect.
func (c *Client) send(ctx context.Context, base string, r *request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	response, err := c.open(ctx, base, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return readAnswer(response)
}

func readAnswer(response *http.Response) (*answer, error) {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	return &answer{response.StatusCode, response.Header, text}, nil
}

// again is the error of an attempt after which another one may succeed.
type again struct {
	error
	after time.Duration // before the next one; 0 is as the client likes
	stays bool          // at this URL: the server works, and refuses
	goes  bool          // nothing failed: the next attempt is due now
}

func (a *again) Unwrap() error { return a.error }

// unanswered is the error of an attempt without an answer. That of one that was not sent is known.
func unanswered(cause error) error {
	if isAgain(cause) || CodeOf(cause) != "" {
		return cause
	}
	var of *url.Error
	if errors.As(cause, &of) {
		cause = of.Err // repeat adds the address
	}
	return &again{error: noAnswer(cause)}
}

func isAgain(err error) bool {
	var failed *again
	return errors.As(err, &failed)
}

// ask sends a request until a server answers it for good. It returns an [Error] if that is no
// success.
func (c *Client) ask(ctx context.Context, r *request) (a *answer, err error) {
	r.timeout = requestTimeout
	limit := c.within(c.config.RetryFor)
	err = c.repeat(ctx, limit, func(ctx context.Context, base string) (err error) {
		a, err = c.try(ctx, base, r)
		return err
	})
	return a, err
}

// try makes one attempt. The error is one to try again after, or final.
func (c *Client) try(ctx context.Context, base string, r *request) (*answer, error) {
	if r.strays() {
		return nil, newError(api.InvalidName, api.InvalidName.Title(), nil)
	}
	a, err := c.send(ctx, base, r)
	if err != nil {
		return nil, unanswered(err)
	}
	return a, a.refusal()
}

// refusal returns nil for a success, and otherwise an error to try again after, or a final one.
func (a *answer) refusal() error {
	if a.status < http.StatusMultipleChoices {
		return nil
	}
	problem := problemOf(a)
	switch {
	case a.status == http.StatusTooManyRequests && problem.RetryAfter > 0:
		return &again{error: problem, after: problem.RetryAfter, stays: true}
	case a.status >= http.StatusInternalServerError:
		return &again{error: problem, after: problem.RetryAfter}
	}
	return problem
}

// tryEntry is try for a request whose answer is an entry.
func (c *Client) tryEntry(ctx context.Context, base string, r *request) (*entry, *answer, error) {
	a, err := c.try(ctx, base, r)
	if err != nil {
		return nil, a, err
	}
	e := new(entry)
	if json.Unmarshal(a.body, e) != nil || e.Token == "" || e.TTLSeconds.Duration() <= 0 {
		return nil, a, unanswered(errors.New("what answered is no server"))
	}
	return e, a, nil
}

// limit says how long a call may take.
type limit struct {
	left func() time.Duration
	held bool // the limit is the deadline of a held lock: pauses are shortened to fit
}

func patient(left func() time.Duration) limit { return limit{left: left} }

// within limits a call to a time from now on.
func (c *Client) within(d time.Duration) limit {
	begun := c.config.clock()
	return patient(func() time.Duration { return d - c.config.clock().since(begun) })
}

// repeat is attempts for a call, which ends when the client is closed.
func (c *Client) repeat(
	ctx context.Context, within limit, attempt func(context.Context, string) error,
) error {
	ctx, stop := until(ctx, c.calls)
	defer stop()
	return c.attempts(ctx, within, attempt)
}

// until returns a context that also ends with other.
func until(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(context.Cause(other)) }
	if other.Err() != nil {
		end()
	}
	stop := context.AfterFunc(other, end)
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// attempts makes attempts until one succeeds or fails for good, or the limit has come. After a
// failure the next attempt is at the next URL at once; after all have failed, after a pause.
func (c *Client) attempts(
	ctx context.Context, within limit, attempt func(context.Context, string) error,
) error {
	failures, pauses := 0, 0
	var last error = noAnswer(context.DeadlineExceeded)
	for {
		left, at := within.left(), c.current.Load()
		switch {
		case ctx.Err() != nil:
			return cancelled(context.Cause(ctx))
		case left <= 0:
			return last
		}
		err := inTime(ctx, left, c.config.URLs[at], attempt)
		var failed *again
		switch {
		case ctx.Err() != nil && err != nil:
			return cancelled(context.Cause(ctx))
		case !errors.As(err, &failed):
			c.failing.Store(false)
			return err
		case failed.goes:
			c.failing.Store(false)
			failures, pauses = 0, 0
			continue
		case failed.stays:
			c.failing.Store(false)
		default:
			if named(failed.error, c.config.URLs[at]) && c.failing.CompareAndSwap(false, true) {
				c.config.Logger.Warn("a request failed and is repeated", "error", failed.error)
			}
			c.current.CompareAndSwap(at, (at+1)%int64(len(c.config.URLs)))
			failures++
		}
		last = failed.error
		if !failed.stays && failures%len(c.config.URLs) != 0 {
			continue
		}
		pause := within.pause(failed.after, pauses)
		pauses++
		if pause >= within.left() {
			return last
		}
		if !sleep(ctx, pause) {
			return cancelled(context.Cause(ctx))
		}
	}
}

// named adds the base URL to the error of an attempt. It reports false for a stream of events that
// ended as servers end it, which is no failure.
func named(err error, base string) bool {
	var problem *Error
	if !errors.As(err, &problem) || problem.Code == NoAnswer && problem.cause == nil {
		return false
	}
	problem.base = base
	return true
}

func inTime(
	ctx context.Context, left time.Duration, base string, attempt func(context.Context, string) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return attempt(ctx, base)
}

// pause returns how long to wait before the next attempt. A held lock is renewed in time rather
// than when the server likes: a third of what is left is the most.
func (l limit) pause(asked time.Duration, pauses int) time.Duration {
	pause := asked
	if pause == 0 {
		pause = min(firstPause<<min(pauses, 10), maxPause)
		pause = pause/2 + rand.N(pause/2)
	}
	if l.held {
		pause = min(pause, max(l.left()/3, minPause))
	}
	return pause
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
