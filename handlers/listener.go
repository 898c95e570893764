package handlers

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/lock"
)

// Listener makes the answers problem documents that net/http gives by itself, before
// any handler: to requests that are not HTTP, without a Host, with headers that are
// too large, of another version, in a transfer coding or with an expectation that it
// does not know. Each closes its connection. They have a request id, and logger is
// told of them, but not of each if there are very many. It accepts no more connections than bound lets it.
func Listener(l net.Listener, bound *Connections, logger *slog.Logger) net.Listener {
	return &listener{l, bound, newRefuser(logger)}
}

type listener struct {
	net.Listener
	bound *Connections
	*refuser
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.counted()
	if err != nil {
		return nil, err
	}
	return &rewriter{Conn: conn, refuser: l.refuser}, nil
}

// counted accepts the next connection for which there is room.
func (l *listener) counted() (*connection, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted := l.bound.enter(conn); counted != nil {
			return counted, nil
		}
		_ = conn.Close() // there is nobody to tell
	}
}

// rewriter is a connection that looks at the beginning of what is written to it.
type rewriter struct {
	net.Conn
	*refuser
}

// Write implements net.Conn. net/http writes such an answer in one piece, and our
// answers have a request id in their first piece.
func (c *rewriter) Write(p []byte) (int, error) {
	status := refusedByNetHTTP(p)
	if status == 0 {
		return c.Conn.Write(p)
	}
	if err := c.answer(c.Conn, status, reasonOf(status)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refuser gives answers that no handler gives.
type refuser struct {
	logger *slog.Logger
	lines  *lines
}

func newRefuser(logger *slog.Logger) *refuser { return &refuser{logger, newLines()} }

// answer writes one, with a line in the log.
func (r *refuser) answer(to net.Conn, status int, detail string) error {
	id := acceptRequestID("")
	r.log(to, status, id)
	_ = to.SetWriteDeadline(time.Now().Add(defaultAnswerTimeout)) // fails if it is closed, as the write will
	_, err := to.Write(refusal(status, id, detail))
	return err
}

func (r *refuser) log(to net.Conn, status int, id string) {
	silenced, ok := r.lines.take(cause{status: status, code: lock.InvalidRequest}, nobodyNew)
	if !ok {
		return
	}
	attrs := []any{"request_id", id, "client", textOfAddress(addressOf(to.RemoteAddr().String())), "status", status, "code", string(lock.InvalidRequest)}
	if silenced > 0 {
		attrs = append(attrs, "silenced", silenced)
	}
	r.logger.Info("request", attrs...)
}

// refusedByNetHTTP returns the status of an answer that no handler gave, or 0.
func refusedByNetHTTP(p []byte) int {
	rest, isHTTP := bytes.CutPrefix(p, []byte("HTTP/1.1 "))
	if !isHTTP || len(rest) < 3 || rest[0] != '4' && rest[0] != '5' {
		return 0
	}
	head, _, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	status, err := strconv.Atoi(string(rest[:3]))
	if err != nil || bytes.Contains(head, []byte("\r\nX-Request-Id:")) || !bytes.Contains(head, []byte("\r\nConnection: close")) {
		return 0
	}
	return status
}

// reasonOf says why net/http refuses a request with the status.
func reasonOf(status int) string {
	detail := map[int]string{
		http.StatusExpectationFailed:           "there is no expectation but 100-continue",
		http.StatusRequestHeaderFieldsTooLarge: "the headers are too large",
		http.StatusNotImplemented:              "the transfer coding is not known",
		http.StatusHTTPVersionNotSupported:     "the version of HTTP is not known",
	}[status]
	if detail == "" {
		detail = "the request is not HTTP as it is understood here"
	}
	return detail
}

// refusal is the whole answer.
func refusal(status int, id, detail string) []byte {
	text := fmt.Appendf(nil, `{"type":"/problems/invalid_request","title":"The request is not valid","status":%d,"detail":%q,"code":"invalid_request","request_id":%q}`,
		status, detail, id)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nX-Request-Id: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), id, len(text), text)
}
