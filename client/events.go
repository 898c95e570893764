package client

import (
	"bufio"
	"context"
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
)

const (
	eventsIdle  = 45 * time.Second // a server sends something every 15 s
	eventsPause = time.Second      // after a stream that ended
	maxEvent    = 1 << 20          // bytes
)

// EventFilter selects events. The zero value is all of the tenant, from now on.
type EventFilter struct {
	// Types of events; events.missed always comes.
	Types []string
	// Locks are up to 8 patterns of names, each with at most one star.
	Locks []string
	// After is the id of the last event that you have dealt with, if you kept one.
	After string
}

// Events iterates over what happens to the tenant's locks. A stream that is cut resumes where it
// was, at another URL if there is one, for as long as it takes. An event of the type events.missed
// says that some are unknown: read [Client.List] then. Events ends with an error if ctx ends, or a
// server refuses for good.
func (c *Client) Events(ctx context.Context, filter EventFilter) iter.Seq2[*api.Event, error] {
	return func(yield func(*api.Event, error) bool) {
		s := &stream{client: c, after: filter.After, path: filter.path(), yield: yield}
		forever := patient(func() time.Duration { return math.MaxInt64 })
		if err := c.repeat(ctx, forever, s.follow); err != nil && !s.over {
			yield(nil, err)
		}
	}
}

func (f EventFilter) path() string {
	query := url.Values{}
	if len(f.Types) > 0 {
		query.Set("types", strings.Join(f.Types, ","))
	}
	if len(f.Locks) > 0 {
		query.Set("locks", strings.Join(f.Locks, ","))
	}
	return withQuery("/events", query)
}

// stream is what is read of events, over the connections that it takes.
type stream struct {
	client *Client
	path   string
	after  string // the last id
	yield  func(*api.Event, error) bool
	over   bool // the reader wants no more
}

// follow reads one connection until it ends. It returns nil if the reader wants no more.
func (s *stream) follow(ctx context.Context, base string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(eventsIdle, cancel)
	defer idle.Stop()
	r := &request{method: http.MethodGet, path: s.path, after: s.after, waits: true}
	response, err := s.client.open(ctx, base, r)
	if err != nil {
		return unanswered(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		a, err := readAnswer(response)
		if err != nil {
			return unanswered(err)
		}
		return a.refusal()
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	var message sse
	for lines.Scan() {
		idle.Reset(eventsIdle)
		if !message.take(lines.Text()) {
			if len(message.data) > maxEvent {
				return &again{error: noAnswer(bufio.ErrTooLong), after: eventsPause}
			}
			continue
		}
		if err := s.deliver(&message); err != nil || s.over {
			return err
		}
		message = sse{}
	}
	return &again{error: noAnswer(lines.Err()), after: eventsPause}
}

// deliver hands over the event of a message, if there is one in it, and remembers its id.
func (s *stream) deliver(message *sse) error {
	if len(message.data) > 0 {
		event := new(api.Event)
		if err := json.Unmarshal(message.data, event); err != nil {
			return &again{error: noAnswer(err), after: eventsPause}
		}
		s.over = !s.yield(event, nil)
	}
	if message.id != "" {
		s.after = message.id
	}
	return nil
}

// sse is one message of a stream of server-sent events.
type sse struct {
	id   string
	data []byte
}

// take adds a line. It reports true for the empty one that ends the message.
func (m *sse) take(line string) bool {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case line == "":
		return true
	case name == "id":
		m.id = value
	case name == "data" && len(m.data) > 0:
		m.data = append(append(m.data, '\n'), value...)
	case name == "data":
		m.data = []byte(value)
	}
	return false
}
