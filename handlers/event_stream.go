package handlers

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/fencepost/fencepost/event"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
)

// eventWriter sends a stream of events, while its client takes it, until there is a reason to end
// it.
type eventWriter struct {
	request *request
	stream  *service.EventStream
	filter  *event.Filter
	sentAt  time.Time // when it last sent something

	out     *http.ResponseController
	timeout time.Duration
	sent    int // bytes since the last deadline
	err     error

	beat *time.Timer // when a sign of life is due
}

func newEventWriter(r *request, stream *service.EventStream, f *event.Filter) *eventWriter {
	return &eventWriter{
		request: r, stream: stream, filter: f, out: http.NewResponseController(unwrapped(r.Writer)),
		timeout: min(eventTimeout, r.endpoints.AnswerTimeout),
	}
}

// unwrapped returns the writer under gin's, whose Flush returns an error.
func unwrapped(w gin.ResponseWriter) http.ResponseWriter {
	if inner, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return inner.Unwrap()
	}
	return w
}

// run begins with where the stream is, so that one that ends before its first event can be
// resumed too.
func (w *eventWriter) run() {
	stop, more := w.begin()
	if !more {
		return
	}
	defer stop()
	w.write([]byte(reconnect + "id: " + w.stream.At().String() + "\n\n"))
	w.flush()
	batch := make([]*events.Record, 64)
	why := ""
	for why == "" && w.err == nil {
		why = w.pause(w.next(batch))
	}
	w.end(why)
}

// begin answers with the head of the stream. more is false if that is all that is asked for;
// else the caller calls stop at the end.
func (w *eventWriter) begin() (stop func(), more bool) {
	eventStreamHeaders(w.request.Writer.Header())
	w.request.Writer.WriteHeader(http.StatusOK)
	if headOnly(w.request) {
		return nil, false
	}
	holdLittle(w.request, sendBuffer)
	w.beat = time.NewTimer(w.request.endpoints.Heartbeat)
	metrics, ctx := w.request.endpoints.Metrics, w.request.context()
	metrics.StreamOpened(ctx, time.Since(w.request.began))
	return func() {
		w.beat.Stop()
		metrics.StreamClosed(ctx, errors.Is(w.err, os.ErrDeadlineExceeded))
	}, true
}

// end says why, to the log, and to the client unless nothing can be written to it any more.
func (w *eventWriter) end(why string) {
	if w.err != nil {
		why = clientStalls
	}
	w.write([]byte(": " + why + "\n\n"))
	w.flush()
	w.request.note(slog.String("ended", why))
}

// next sends what there is, or returns what is closed when there may be more.
func (w *eventWriter) next(batch []*events.Record) (more <-chan struct{}) {
	texts, more := w.read(batch)
	for _, text := range texts {
		w.write(text)
	}
	if w.sent > 0 {
		w.sentAt = time.Now()
	}
	w.flush()
	return more
}

// read is take, behind the gate where it replays the past: there may be thousands of events at once
// for each of a tenant's streams. If the gate is full, the stream tries again after a pause.
func (w *eventWriter) read(batch []*events.Record) (texts [][]byte, more <-chan struct{}) {
	if !w.stream.Past() {
		return w.take(batch)
	}
	g := w.request.endpoints.gate
	if g.enter(w.request.context(), w.request.tenant()) != nil {
		later := make(chan struct{})
		time.AfterFunc(gatePause, func() { close(later) })
		return nil, later
	}
	defer g.leave()
	return w.take(batch)
}

// take returns what there is to send, or a channel that is closed when there may be more.
func (w *eventWriter) take(batch []*events.Record) (texts [][]byte, more <-chan struct{}) {
	given, missed, more := w.stream.Next(batch)
	if missed != nil {
		texts = append(texts, missedMessage(missed, time.Now()))
	}
	for _, r := range given {
		if text := eventMessage(w.filter, r); text != nil {
			texts = append(texts, text)
		}
	}
	clear(given) // what is kept elsewhere need not be kept here
	return texts, more
}

// pause waits until more is closed and it is time to tell it; if more is nil, there is more
// already. It returns why the stream ends, if it does: what is due for that comes first, for a
// stream too that always has something to send.
func (w *eventWriter) pause(more <-chan struct{}) (why string) {
	if more == nil {
		return w.due()
	}
	if rest := time.Until(w.sentAt.Add(w.stream.Spacing())); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		if why = await(w, timer.C); why != "" {
			return why
		}
	}
	return await(w, more)
}

// due does what is due, without waiting.
func (w *eventWriter) due() (why string) {
	select {
	case <-w.stream.Draining:
		return serverDrains
	case <-w.request.context().Done():
		return w.request.whyGone()
	case <-w.beat.C:
		w.live()
	default:
	}
	return ""
}

// await waits for something, or for what is due before.
func await[T any](w *eventWriter, something <-chan T) (why string) {
	select {
	case <-something:
	case <-w.beat.C:
		w.live()
	case <-w.stream.Draining:
		return serverDrains
	case <-w.request.context().Done():
		return w.request.whyGone()
	}
	return ""
}

// Why streams end.
const (
	tokenExpired = "the token or certificate of the caller has expired; get a new one"
	serverDrains = "this server shuts down; go on at another"
	clientGone   = "the client is gone"
	isWithdrawn  = "the credential of the caller was withdrawn; get a new one"
	clientStalls = "the client takes nothing"
)

// live shows that the stream is, and from where it can be resumed: a reader that gets no event for
// long would else come back with an id that is no longer kept.
func (w *eventWriter) live() {
	w.write([]byte(":\nid: " + w.stream.At().String() + "\n\n"))
	w.flush()
	w.beat.Reset(w.request.endpoints.Heartbeat)
}

// write sends a message. The client has a timeout for every few kilobytes.
func (w *eventWriter) write(text []byte) {
	if w.err != nil {
		return
	}
	if w.sent == 0 || w.sent > atOnce {
		w.sent = 0
		// fails if the connection is closed, as the write will
		_ = w.out.SetWriteDeadline(time.Now().Add(w.timeout))
	}
	_, w.err = w.request.Writer.Write(text)
	w.sent += len(text)
}

func (w *eventWriter) flush() {
	if w.err == nil && w.sent > 0 {
		w.err = w.out.Flush()
		w.sent = 0
	}
}
