package handlers

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/api"
)

const (
	// defaultAnswerTimeout is how long a client may take to receive an answer, from
	// its first byte on. Waiting for a lock comes before that. Within half of it the client has to
	// send the rest of an unread body.
	defaultAnswerTimeout = 15 * time.Second

	// smallAnswer is what a connection costs anyway, about. Answers up to it are not
	// counted, and their buffers are used again.
	smallAnswer = 16 << 10 // bytes

	// Larger answers are kept in memory until their clients have received them, so
	// they are counted, for each tenant and in all.
	maxAnswers   = 64 << 20 // bytes
	answerShares = 4        // one tenant has one of them
)

// answer passes on what a handler writes, and gives the client a limited time to
// receive it.
type answer struct {
	http.ResponseWriter
	timeout time.Duration
	unread  bool // the request's body may not be here whole
	begun   bool
	gone    bool // the client has closed the connection
	request request
}

// WriteHeader implements http.ResponseWriter. [statusClientGone] is not sent.
func (w *answer) WriteHeader(status int) {
	if status == statusClientGone {
		w.gone = true
		return
	}
	if status >= http.StatusOK {
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *answer) Write(p []byte) (int, error) {
	if w.gone {
		return 0, http.ErrAbortHandler
	}
	w.begin()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *answer) Flush() {
	if w.gone {
		return
	}
	w.begin()
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// FlushError is Flush, and tells how it went.
func (w *answer) FlushError() error {
	if w.gone {
		return http.ErrAbortHandler
	}
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController find the connection.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answer) begin() {
	if !w.begun {
		w.begun = true
		now := time.Now()
		w.deadline(now.Add(w.timeout))
		if w.unread {
			_ = w.bodyDeadline(now.Add(w.timeout / 2)) // fails if the connection is closed, as the read will
		}
	}
}

// bodyDeadline is for the unread rest of the request's body. Over HTTP/1.1 net/http reads it before
// it sends an answer, and would wait for it without end, with all that the request keeps. When the
// body is complete, net/http takes the deadline back. A connection that has no deadlines, as in
// tests, has no body that could be slow either.
func (w *answer) bodyDeadline(t time.Time) error {
	if conn, ok := w.ResponseWriter.(interface{ SetReadDeadline(time.Time) error }); ok {
		return conn.SetReadDeadline(t)
	}
	return nil
}

// deadline is for everything that is written from now on. A connection that has
// none, as in tests, cannot block either.
func (w *answer) deadline(t time.Time) {
	if conn, ok := w.ResponseWriter.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = conn.SetWriteDeadline(t) // fails if the connection is closed, as the write will
	}
}

// respondLarge answers with a body of about size bytes, which is made behind the gate, if the bytes
// of large answers allow it.
func (r *request) respondLarge(size int, body func() any) error {
	if size > smallAnswer {
		if !r.bytes.take(r.tenant(), size) {
			return errOverloaded("large answers")
		}
		if err := r.enterGate(); err != nil {
			return err
		}
	}
	r.write(http.StatusOK, "application/json", body())
	return nil
}

// write encodes a body and sends it, or 304 if the client has it already.
func (r *request) write(status int, contentType string, body any) {
	text := r.endpoints.buffers.Get().(*bytes.Buffer)
	defer r.endpoints.putBack(text)
	text.Reset()
	// the taken bytes are for the longest possible texts, and few answers are half as long
	text.Grow(r.bytes.size / 4)
	if err := api.Encode(text, body); err != nil {
		r.line.cause = err
		r.AbortWithStatus(http.StatusInternalServerError)
		return
	}
	if r.tagged && status == http.StatusOK && unchanged(r, tagOf(text.Bytes())) {
		return
	}
	r.walk.leave() // before a client takes it slowly
	if text.Len() > smallAnswer && r.bytes.size == 0 {
		r.bytes.takeAnyway(r.tenant(), text.Len())
	}
	r.send(status, contentType, text.Bytes())
}

// send writes an answer and flushes it. Without the flush it would leave after the metrics and the
// log line, for which the next one in the queue would have to wait too.
func (r *request) send(status int, contentType string, text []byte) {
	r.set("Content-Type", contentType)
	r.set("Content-Length", strconv.Itoa(len(text)))
	r.Writer.WriteHeader(status)
	if _, err := r.Writer.Write(text); err != nil {
		r.line.cause = err
	}
	r.Writer.Flush()
}

// putBack keeps a buffer for the next answer, if it is of an ordinary size.
func (a *endpoints) putBack(text *bytes.Buffer) {
	if text.Cap() <= smallAnswer {
		a.buffers.Put(text)
	}
}
