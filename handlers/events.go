package handlers

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/event"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
)

// maxEventPatterns is how many name patterns a stream may be limited to.
const maxEventPatterns = 8

// followEvents tells a tenant what happens, as it happens.
//
// @Summary     Follow events
// @Description Streams server-sent events in order, from now on or after `Last-Event-ID`, at any replica. A message `events.missed` names a gap.
// @Produce     text/event-stream
// @Security    bearer[locks:read]
// @Param       types         query  string false "Only these types, separated by commas, and always `events.missed`"
// @Param       locks         query  string false "Only locks that match one of up to 8 patterns, separated by commas, with at most one star each"
// @Param       Last-Event-ID header string false "The id of the last message that the client received"
// @Success     200 {object} api.Event "The `data` of each message"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     429 {object} api.Problem "quota_exceeded, overloaded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, draining, fence_floor_required"
// @Router      /events [get]
func followEvents(r *request) error { return follow(r, r.tenant()) }

// followAllEvents tells operators what happens, in all tenants.
//
// @Summary     Follow the events of all tenants
// @Description Streams events as `/events` does, of all tenants or of one.
// @Produce     text/event-stream
// @Param       types         query  string false "Only these types, separated by commas, and always `events.missed`"
// @Param       locks         query  string false "Only locks that match one of up to 8 patterns, separated by commas, with at most one star each"
// @Param       tenant        query  string false "Only this tenant; the token's own with the scope `tenant-admin`"
// @Param       Last-Event-ID header string false "The id of the last message that the client received"
// @Success     200 {object} api.Event "The `data` of each message"
// @Failure     413 {object} api.Problem "body_too_large"
// @Failure     429 {object} api.Problem "quota_exceeded, overloaded, rate_limited"
// @Failure     503 {object} api.Problem "store_unavailable, draining, fence_floor_required"
// @Router      /admin/events [get]
func followAllEvents(r *request) error {
	q := r.query()
	tenant := q.tenant()
	if q.err != nil {
		return q.err
	}
	return follow(r, tenant)
}

// follow answers with the events of a tenant, or of all if it is "".
func follow(r *request, tenant string) error {
	if err := r.skipBody(); err != nil {
		return err
	}
	q := r.query()
	filter, after := q.eventFilter(), q.lastEventID()
	if q.err != nil {
		return q.err
	}
	req := service.EventsRequest{Of: r.tenant(), Tenant: tenant, After: after}
	stream, err := r.endpoints.Service.Events(r.context(), req)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer r.lasts(endless)()
	newEventWriter(r, stream, filter).run()
	return nil
}

// lastEventID returns the id after which to go on, nil if there is none.
func (q *query) lastEventID() *lock.EventID {
	const name = "Last-Event-ID"
	values := q.r.Request.Header.Values(name)
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "": // of a stream without messages
		return nil
	case len(values) > 1:
		q.invalid(name, "must not be there twice")
	}
	id, err := lock.ParseEventID(values[0])
	if err != nil {
		q.invalid(name, "is not the id of an event")
	}
	return &id
}

func (q *query) eventFilter() *event.Filter {
	f := &event.Filter{Within: q.r.principal.Locks}
	if text, sent := q.sent("types"); sent {
		f.Types = q.eventTypes(text)
	}
	if text, sent := q.sent("locks"); sent {
		f.Locks = q.patterns(text)
	}
	return f
}

// eventTypes reads a list of types. [api.EventsMissed] is none of them, because it always comes.
func (q *query) eventTypes(text string) []lock.EventKind {
	types := []lock.EventKind{}
	for i, kind := range strings.Split(text, ",") {
		switch {
		case kind == api.EventsMissed || slices.Contains(types, lock.EventKind(kind)):
		case slices.Contains(lock.EventKinds(), lock.EventKind(kind)):
			types = append(types, lock.EventKind(kind))
		default: // named by its place: the text may be a secret that was put there by mistake
			q.reject(lock.Invalid("types",
				"must be types of events, separated by commas; number %d is none of %s, %s",
				i+1, lock.EventKindNames(), api.EventsMissed))
		}
	}
	return types
}

// patterns reads a list of patterns of lock names.
func (q *query) patterns(text string) (patterns []auth.Pattern) {
	texts := strings.SplitN(text, ",", maxEventPatterns+1)
	if len(texts) > maxEventPatterns {
		q.reject(lock.Invalid("locks", "must be at most %d patterns", maxEventPatterns))
	}
	for _, one := range texts {
		p, err := auth.ParseNamePattern(one)
		if err != nil {
			q.invalid(
				"locks", "must be patterns of lock names with at most one star each, separated by commas",
			)
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// Of a stream of events.
const (
	// heartbeat is the time between two signs of life.
	heartbeat = 15 * time.Second

	// eventTimeout is how long a client may take to receive what is sent at once: a few
	// kilobytes.
	eventTimeout = 10 * time.Second
	atOnce       = 4 << 10 // bytes

	// sendBuffer is how much the system holds for a client that does not take it, about.
	sendBuffer = 64 << 10 // bytes

	// gatePause is how long a replay waits before it tries the full gate again.
	gatePause = 100 * time.Millisecond

	// reconnect is after how long a client is asked to come back when the stream ends.
	reconnect = "retry: 1000\n"
)

// headOnly reports whether the request asks for what a GET would be answered, without its
// body.
func headOnly(r *request) bool { return r.context().Value(headKey{}) != nil }

// headKey marks requests whose answer has no body.
type headKey struct{}

// eventStreamHeaders keep what is between us and the client from holding events back.
func eventStreamHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
}

// eventMessage returns an event as the reader gets it, nil if it gets none. Most readers see all
// locks of it: their text is made once.
func eventMessage(f *event.Filter, r *events.Record) []byte {
	claims := f.Claims(&r.Event)
	switch len(claims) {
	case 0:
		return nil
	case len(r.Entry.Claims):
		return r.Text(func(e *lock.Event) []byte { return message(e.ID, event.Of(e, e.Entry.Claims)) })
	}
	return message(r.ID, event.Of(&r.Event, claims))
}

// missedMessage names the gap in a reader's events.
func missedMessage(m *events.Missed, now time.Time) []byte {
	return message(m.Before, event.Missed(m.After, m.Before, now))
}

// message is an event of an event stream, as HTML's standard has it. JSON has no line
// break.
func message(id lock.EventID, e *api.Event) []byte {
	var text bytes.Buffer
	text.WriteString("id: " + id.String() + "\nevent: " + e.Type + "\ndata: ")
	if err := api.Encode(&text, e); err != nil {
		return nil // nothing in it can fail to be JSON
	}
	text.WriteString("\n\n")
	return bytes.Clone(text.Bytes())
}
