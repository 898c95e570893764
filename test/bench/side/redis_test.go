package side

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// scripted is a connection whose other side has its answers ready.
type scripted struct {
	net.Conn
	answers io.Reader
	sent    bytes.Buffer
}

func (c *scripted) Read(b []byte) (int, error)    { return c.answers.Read(b) }
func (c *scripted) Write(b []byte) (int, error)   { return c.sent.Write(b) }
func (c *scripted) SetDeadline(_ time.Time) error { return nil }

func redisClient(answers string) (*redisWorker, *scripted) {
	conn := &scripted{answers: strings.NewReader(answers)}
	w := &redisWorker{line: newLine(NewConnections(), ""), script: "digest"}
	w.conn = conn
	w.reader.Reset(conn)
	return w, conn
}

func TestRedisClientTriesUntilTheLockIsFree(t *testing.T) {
	w, conn := redisClient("$-1\r\n+OK\r\n:1\r\n")
	if _, err := w.Acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	const set = "*6\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\n0-1\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n"
	const release = "*5\r\n$7\r\nEVALSHA\r\n$6\r\ndigest\r\n$1\r\n1\r\n$1\r\na\r\n$3\r\n0-1\r\n"
	if got := conn.sent.String(); got != set+set+release {
		t.Errorf("sent %q", got)
	}
}

func TestRedisClientFailsWhenItsLockIsGone(t *testing.T) {
	w, _ := redisClient("+OK\r\n:0\r\n")
	if _, err := w.Acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Release(t.Context()); err == nil {
		t.Error("a release of another client's lock is no error")
	}
}

func TestRedisClientReportsErrors(t *testing.T) {
	w, _ := redisClient("-OOM command not allowed\r\n")
	if _, err := w.Acquire(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Error(err)
	}
}
