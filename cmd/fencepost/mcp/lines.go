package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines gives the session one valid message at a time, and answers the other lines with an error:
// the SDK would end the session, which releases the locks of an agent that works on. It reports its
// end, at which calls that wait must end.
type lines struct {
	in    *bufio.Reader // its size bounds a line
	out   io.Writer
	ended func()
	rest  []byte // of a message, not read yet
}

func newLines(in io.Reader, out io.Writer, ended func()) *lines {
	return &lines{in: bufio.NewReaderSize(in, maxLine), out: out, ended: ended}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			err = l.skip()
			l.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a line has at most %d bytes", maxLine))
		case len(bytes.TrimSpace(line)) > 0:
			l.rest, err = l.checked(line), nil // the next read returns the error
		}
		if err != nil {
			l.ended()
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// skip reads up to the end of the line.
func (l *lines) skip() error {
	for {
		if _, err := l.in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// checked returns the line if it is a message of JSON-RPC, or nil.
func (l *lines) checked(line []byte) []byte {
	if !json.Valid(line) {
		l.refuse(nil, jsonrpc.CodeParseError, "a line must be one message in JSON")
		return nil
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		l.refuse(idOf(line), jsonrpc.CodeInvalidRequest, "a line must be one message of JSON-RPC 2.0")
		return nil
	}
	return line
}

// idOf returns the id of an invalid request, or nil if it has none that is valid.
func idOf(line []byte) any {
	var request struct{ ID any }
	_ = json.Unmarshal(line, &request) // which leaves the id out
	switch request.ID.(type) {
	case string, float64:
		return request.ID
	}
	return nil
}

// refuse answers a line. A writer that fails ends the session by itself.
func (l *lines) refuse(id any, code int, message string) {
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message},
	})
	if err == nil {
		_, _ = l.out.Write(append(text, '\n'))
	}
}

// Close leaves the reader to the caller, as output leaves the writer.
func (l *lines) Close() error { return nil }

// output ends the session when the reader has gone away.
type output struct {
	mu    sync.Mutex // answers come from the SDK and from lines
	to    io.Writer
	ended func()
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.to.Write(p)
	if err != nil {
		o.ended()
	}
	return n, err
}

func (o *output) Close() error { return nil }
