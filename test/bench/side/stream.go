package side

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Stream is a client's side of server-sent events.
type Stream struct {
	http *caller
	body *bufio.Reader
	resp *http.Response
}

// Follow asks for the stream at path as the client i, and returns when it has begun.
func (f Fencepost) Follow(ctx context.Context, i int, path string) (*Stream, error) {
	c := newCaller(f.Connections, f.Bases[i%len(f.Bases)], http.Header{"Authorization": {"Bearer " + f.Bearers[i%len(f.Bearers)]}})
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	s := &Stream{http: c}
	if err := s.begin(path); err != nil {
		c.hangUp()
		return nil, fmt.Errorf("follow %s: %w", path, err)
	}
	return s, nil
}

func (s *Stream) begin(path string) error {
	// The path may have a query, which a caller's own requests do not have.
	head := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n", path, s.http.url.Host, s.http.header.Get("Authorization"))
	if _, err := s.http.conn.Write(head); err != nil {
		return err
	}
	var err error
	if s.resp, err = http.ReadResponse(s.http.reader, nil); err != nil { //nolint:bodyclose // Read closes it
		return err
	}
	if s.resp.StatusCode != http.StatusOK {
		defer s.resp.Body.Close()
		return errors.New(s.resp.Status)
	}
	s.body = bufio.NewReaderSize(s.resp.Body, 4<<10)
	return nil
}

// Read calls told with the data of each message, which is valid until it returns, until the
// stream ends. It returns how that was, also if [Stream.Close] ended it.
func (s *Stream) Read(told func(data []byte)) error {
	defer s.resp.Body.Close()
	var long []byte // what is there of a line that does not fit in
	for {
		line, err := s.body.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if err != nil {
			return err
		}
		if len(long) > 0 {
			line = append(long, line...)
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			told(data)
		}
		long = long[:0]
	}
}

// Close ends the stream. A Read that is under way returns.
func (s *Stream) Close() { s.http.connections.drop(s.http.conn) }
