package webhook

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What is read of an answer at most: of its heads, those with status 1xx before it
// included, in bytes and in lines, as each line takes far more memory than its bytes; and of
// its body, as it is sent, in bytes.
const (
	maxHead      = 16 << 10
	maxHeadLines = 128
	maxBody      = 16 << 10
)

// maxRetryAfter bounds what a receiver may ask for.
const maxRetryAfter = 24 * time.Hour

// minSkew is the least difference of clocks that is reported.
const minSkew = time.Minute

// fault is an error of our own about what a receiver sends.
type fault string

func (f fault) Error() string { return string(f) }

const (
	errLongHead      fault = "the head of the answer is too long"
	errLongHandshake fault = "the handshake is too long"
)

// answer is what is kept of one.
type answer struct {
	status           int
	date, retryAfter string // headers
}

// exchange sends the request and reads the answer. Once there is a status, that is the
// answer, whatever becomes of its body.
func exchange(conn net.Conn, e *endpoint, headers http.Header, payload []byte) (*answer, error) {
	request := newRequest(e, headers, payload)
	w := bufio.NewWriter(conn)
	sendErr := errors.Join(request.Write(w), w.Flush())
	// A receiver may answer before it has read everything, and close.
	a, err := readAnswer(conn, request)
	if err != nil {
		return nil, &stepError{exchanging, errors.Join(err, sendErr)}
	}
	return a, nil
}

func newRequest(e *endpoint, headers http.Header, payload []byte) *http.Request {
	request := &http.Request{
		Method: http.MethodPost, URL: e.url, Host: e.url.Host, Close: true,
		Header:        http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Fencepost"}},
		Body:          io.NopCloser(bytes.NewReader(payload)),
		ContentLength: int64(len(payload)),
	}
	maps.Copy(request.Header, headers)
	return request
}

// readAnswer reads no more than the bounds of its head and body from the connection.
func readAnswer(conn net.Conn, request *http.Request) (*answer, error) {
	bounded := &boundedReader{from: conn, bytes: maxHead, lines: maxHeadLines, beyond: errLongHead}
	r := bufio.NewReaderSize(bounded, 2<<10) // a piece counts when the next one is asked for
	for {
		response, err := http.ReadResponse(r, request)
		if err != nil {
			if bounded.spent() { // net/http tells what it made of the last line
				err = errLongHead
			}
			return nil, err
		}
		if s := response.StatusCode; s < 200 && s != http.StatusSwitchingProtocols {
			continue // there is another to come
		}
		*bounded = boundedReader{from: conn, bytes: maxBody, lines: math.MaxInt, beyond: io.EOF}
		a := &answer{response.StatusCode, response.Header.Get("Date"), response.Header.Get("Retry-After")}
		response.Header = nil // which may be large, and the body slow
		drop(response)
		return a, nil
	}
}

// boundedReader returns an error once it has read as much as it may.
type boundedReader struct {
	from         io.Reader
	bytes, lines int // left
	beyond       error
}

func (r *boundedReader) spent() bool { return r.bytes <= 0 || r.lines <= 0 }

func (r *boundedReader) Read(b []byte) (int, error) {
	if r.spent() {
		return 0, r.beyond
	}
	n, err := r.from.Read(b[:min(len(b), r.bytes)])
	r.bytes -= n
	r.lines -= bytes.Count(b[:n], []byte("\n"))
	return n, err
}

// drop reads the body, so that a receiver that still writes it is not interrupted. Closing
// reads on, up to the limit of the reader below.
func drop(response *http.Response) {
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// result says what an answer means that came now.
func (a *answer) result(now time.Time) Result {
	r := Result{Outcome: a.outcome(), Status: a.status}
	date, err := http.ParseTime(a.date)
	if err == nil && date.Sub(now).Abs() > minSkew {
		r.DateSkew = date.Sub(now).Truncate(time.Second)
	}
	if r.Outcome == Delivered {
		return r
	}
	r.Err = a.explain()
	if r.Outcome != Gone {
		if err != nil {
			date = now
		}
		r.RetryAfter = parseRetryAfter(a.retryAfter, date)
	}
	return r
}

func (a *answer) outcome() Outcome {
	switch {
	case a.status >= 200 && a.status <= 299:
		return Delivered
	case a.status == http.StatusGone:
		return Gone
	case a.status == http.StatusTooManyRequests, a.status == http.StatusBadGateway,
		a.status == http.StatusServiceUnavailable, a.status == http.StatusGatewayTimeout:
		return Throttled
	}
	return Failed
}

func (a *answer) explain() string {
	text := "it answered " + strconv.Itoa(a.status)
	switch {
	case a.status == http.StatusGone:
		text += ": it wants nothing any more"
	case a.status >= 300 && a.status <= 399:
		text += ": redirects are not followed"
	}
	return text
}

// parseRetryAfter reads seconds, or an instant. That is by the receiver's clock, so it is
// counted from what its Date header says that it is now.
func parseRetryAfter(text string, date time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(until.Sub(date), 0), maxRetryAfter)
}
