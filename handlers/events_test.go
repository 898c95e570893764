package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/events"
	"github.com/fencepost/fencepost/test/poll"
)

// told is a message of a stream of events.
type told struct {
	ID    string // as a browser has it after the message
	Event string
	Data  eventBody
}

type eventBody struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Timestamp instant `json:"timestamp"`
	Data      struct {
		Number        uint64      `json:"number"`
		Tenant        string      `json:"tenant"`
		Lock          string      `json:"lock"`
		Locks         []string    `json:"locks"`
		Entry         *eventEntry `json:"entry"`
		Reason        string      `json:"reason"`
		Held          *bool       `json:"held"`
		WaitedSeconds *float64    `json:"waited_seconds"`
		HeldSeconds   *float64    `json:"held_seconds"`
		Asked         *eventAsk   `json:"release_requested"`
		Revoked       *struct {
			By     string `json:"by"`
			Reason string `json:"reason"`
		} `json:"revoked"`
		After  string `json:"after"`
		Before string `json:"before"`
	} `json:"data"`
}

type eventAsk struct {
	Since         instant `json:"since"`
	WithinSeconds float64 `json:"within_seconds"`
	WishedAt      instant `json:"wished_at"`
}

type eventEntry struct {
	ID         string            `json:"id"`
	Mode       string            `json:"mode"`
	Limit      int               `json:"limit"`
	Permits    int               `json:"permits"`
	Locks      []setLock         `json:"locks"`
	Any        int               `json:"any"`
	Holder     string            `json:"holder"`
	Fence      uint64            `json:"fence"`
	TTLSeconds float64           `json:"ttl_seconds"`
	EnqueuedAt instant           `json:"enqueued_at"`
	Metadata   map[string]string `json:"metadata"`
}

// stream reads a stream of events as the standard says.
type stream struct {
	t      testing.TB
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	lastID   string
	messages []told
	comments []string
	text     bytes.Buffer
	err      error
}

// follow begins a stream, which is read until the test is over, and then held against the
// description.
func (c *client) follow(path string, o ...option) *stream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := c.request(ctx, "GET", path, o...)
	resp, err := c.replica.transport.RoundTrip(r.Request)
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	s := &stream{t: c.t, cancel: cancel, done: make(chan struct{})}
	go s.read(resp.Body)
	c.t.Cleanup(func() {
		s.end()
		_ = resp.Body.Close()
		for _, v := range violations(r, resp, s.text.Bytes()) {
			c.t.Errorf("GET %s: not as described: %v", path, v)
		}
		if found := shared.secrets.find(s.text.Bytes()); found != "" {
			c.t.Errorf("GET %s shows the secret %q", path, found)
		}
	})
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" ||
		resp.Header.Get("Cache-Control") != "no-store" {
		if resp.StatusCode != http.StatusOK {
			<-s.done // it is a problem, and has an end
		}
		c.t.Fatalf("GET %s = %d %v %s", path, resp.StatusCode, resp.Header, s.text.Bytes())
	}
	return s
}

// end ends the stream from this side.
func (s *stream) end() {
	s.cancel()
	<-s.done
}

// wantEnd waits until the stream has ended from the other side.
func (s *stream) wantEnd() {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		s.t.Fatal("the stream does not end")
	}
}

func (s *stream) read(body io.Reader) {
	defer close(s.done)
	var m told
	for lines := bufio.NewScanner(io.TeeReader(body, &s.text)); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		s.mu.Lock()
		switch {
		case lines.Text() == "" && m.Event != "":
			m.ID = s.lastID
			s.messages = append(s.messages, m)
			m = told{}
		case lines.Text() == "" || field == "retry":
		case field == "":
			s.comments = append(s.comments, value)
		case field == "id":
			s.lastID = value
		case field == "event":
			m.Event = value
		case field == "data":
			d := json.NewDecoder(strings.NewReader(value))
			d.DisallowUnknownFields()
			if err := d.Decode(&m.Data); err != nil {
				s.err = fmt.Errorf("%w in %s", err, value)
			}
		default:
			s.err = fmt.Errorf("an unknown field in the line %q", lines.Text())
		}
		s.mu.Unlock()
	}
}

// wait returns the messages when there are n, or what there is when the stream has ended.
func (s *stream) wait(n int) []told {
	s.t.Helper()
	var got []told
	poll.Until(s.t, fmt.Sprint(n, " messages"), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = append([]told{}, s.messages...)
		if s.err != nil {
			s.t.Fatal(s.err)
		}
		return len(got) >= n
	})
	for _, m := range got {
		if m.Event != m.Data.Type || m.ID != m.Data.ID || m.Data.Timestamp.IsZero() {
			s.t.Errorf("the message %+v has another type or id, or no time", m)
		}
	}
	return got
}

func (s *stream) lastComment() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.comments) == 0 {
		return ""
	}
	return s.comments[len(s.comments)-1]
}

func (s *stream) wants(want ...string) []told {
	s.t.Helper()
	got := s.wait(len(want))
	var texts []string
	for _, m := range got {
		texts = append(texts, strings.TrimSpace(
			m.Event+" "+m.Data.Data.Lock+strings.Join(m.Data.Data.Locks, ",")+" "+m.Data.Data.Reason,
		))
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		s.t.Fatalf("told (-want +got):\n%s", diff)
	}
	return got
}

// TestReplicasSendTheSameEvents: every replica sends the same events with the same ids, and a
// stream can be resumed at another replica.
func TestReplicasSendTheSameEvents(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	here, there := c.follow("/events"), c.at(shared.other).follow("/events")
	first := c.acquire("orders:42", body(`{"holder":"first","metadata":{"job":"7"}}`), key("k"))
	waits := c.named("second").join("orders:42", body(`{"wait_seconds":60}`))
	c.release(first)
	second := waits.wait().held(http.StatusCreated)
	want := []string{
		"lock.acquired orders:42", "lock.enqueued orders:42", "lock.released orders:42 released",
		"lock.acquired orders:42",
	}
	got := here.wants(want...)
	other := there.wants(want...)
	for i := range got {
		if got[i].ID != other[i].ID || got[i].Data.Data.Entry.ID != other[i].Data.Data.Entry.ID {
			t.Errorf("one replica tells %+v, the other %+v", got[i], other[i])
		}
	}
	if got := must(lock.ParseEventID(got[0].ID)); got.Number != *first.Fence {
		t.Errorf("the first grant is %v, want the number %d", got, *first.Fence)
	}
	random := cmpopts.IgnoreFields(eventEntry{}, "EnqueuedAt")
	entry := &eventEntry{
		ID: first.ID, Mode: "exclusive", Holder: "first", Fence: *first.Fence, TTLSeconds: 30,
		Metadata: map[string]string{"job": "7"},
	}
	for _, i := range []int{0, 2} {
		if diff := cmp.Diff(entry, got[i].Data.Data.Entry, random); diff != "" ||
			got[i].Data.Data.Tenant != c.claims.Tenant {
			t.Errorf("%+v (-want +got):\n%s", got[i], diff)
		}
	}
	if d := got[1].Data.Data; d.Entry.Fence != 0 || d.Held != nil || d.WaitedSeconds != nil {
		t.Errorf("of a waiter is told %+v", d)
	}
	if d := got[2].Data.Data; d.Held == nil || !*d.Held || d.HeldSeconds == nil {
		t.Errorf("of an end is told %+v", d)
	}
	then := must(lock.ParseEventID(got[2].ID)) // others' entries may share the write
	then.Index++
	if d := got[3].Data.Data; d.Entry.Fence != *second.Fence || d.WaitedSeconds == nil ||
		got[3].ID != then.String() {
		t.Errorf("of the next grant is told %+v as %s", d, got[3].ID)
	}
	c.at(shared.other).follow("/events", header("Last-Event-ID", got[1].ID)).wants(want[2:]...)
}

func TestEventsNameOnlySelectedLocksOfASet(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	all := c.follow("/events")
	limited := c.within("a*", "c")
	some, fewer, none := limited.follow("/events"), limited.follow(
		"/events?locks=c,b",
	), limited.follow("/events?locks=b,a2")
	s := c.acquireSet(
		`{"locks":[{"name":"c","mode":"semaphore","limit":2,"permits":2},{"name":"a"},{"name":"b","mode":"shared"}]}`,
	)
	c.acquire("c2")
	c.acquire("a2")
	e := all.wants("lock.acquired a,b,c", "lock.acquired c2", "lock.acquired a2")[0].Data.Data.Entry
	want := []setLock{
		{Name: "a", Mode: "exclusive"},
		{Name: "b", Mode: "shared"},
		{Name: "c", Mode: "semaphore", Limit: 2, Permits: 2},
	}
	if diff := cmp.Diff(want, e.Locks); diff != "" || e.ID != s.ID || e.Mode != "" {
		t.Errorf("of the set is told %+v (-want +got):\n%s", e, diff)
	}
	e = some.wants("lock.acquired a,c", "lock.acquired a2")[0].Data.Data.Entry
	if diff := cmp.Diff([]setLock{want[0], want[2]}, e.Locks); diff != "" {
		t.Errorf("of the set is told (-want +got):\n%s", diff)
	}
	fewer.wants("lock.acquired c")
	none.wants("lock.acquired a2")
}

func TestEventsAreSelectedByType(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events?types=lock.released,lock.acquired,lock.released&locks=orders:*,x")
	missed := c.follow("/events?types=events.missed", header("Last-Event-ID", "1-1"))
	for _, name := range []string{"orders:1", "x", "y", "orders"} {
		c.release(c.acquire(name))
	}
	s.wants(
		"lock.acquired orders:1", "lock.released orders:1 released", "lock.acquired x",
		"lock.released x released",
	)
	missed.wants("events.missed")
}

// TestOldEventIDGetsEventsMissed: a stream that resumes from an old id gets events.missed, and goes
// on from there.
func TestOldEventIDGetsEventsMissed(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := newReplica(t, func(cfg *service.Config) { cfg.Events = events.Config{TenantEvents: 4} })
	live := c.at(r).follow("/events")
	e := c.acquire("a")
	all := live.wait(1) // one by one: it is missed for a stream too that comes four events late
	for len(all) < 9 {
		c.release(e)
		live.wait(len(all) + 1)
		e = c.acquire("a")
		all = live.wait(len(all) + 2)
	}
	kept := []string{
		"lock.released a released", "lock.acquired a", "lock.released a released", "lock.acquired a",
	}
	for _, id := range []string{"1-1", all[2].ID} {
		missed := c.at(r).follow("/events", header("Last-Event-ID", id)).wants(
			append([]string{"events.missed"}, kept...)...,
		)[0]
		if d := missed.Data.Data; d.After != id || d.Before != missed.ID || missed.ID != all[4].ID {
			t.Errorf("after %s is told %+v, want that %s is the last that is missing", id, missed, all[4].ID)
		}
		c.at(r).follow("/events", header("Last-Event-ID", missed.ID)).wants(kept...)
	}
}

func TestEventsStayWithinTheTenant(t *testing.T) {
	t.Parallel()
	c, other := newTenant(t), newTenant(t)
	victim, spy := c.follow("/events"), other.follow("/events")
	admin := other.admin()
	all, one, none := admin.follow("/admin/events"), admin.follow(
		"/admin/events?tenant="+c.claims.Tenant,
	), admin.follow("/admin/events?tenant=nobody")
	c.acquire("orders:42")
	other.acquire("orders:42")
	if got := victim.wants("lock.acquired orders:42")[0].Data.Data.Tenant; got != c.claims.Tenant {
		t.Errorf("an event of %s is told to %s", got, c.claims.Tenant)
	}
	if got := spy.wants("lock.acquired orders:42")[0].Data.Data.Tenant; got != other.claims.Tenant {
		t.Errorf("an event of %s is told to %s", got, other.claims.Tenant)
	}
	one.wants("lock.acquired orders:42")
	none.wants()
	seen := map[string]bool{}
	poll.Until(t, "an operator sees both", func() bool {
		for _, m := range all.wait(0) {
			seen[m.Data.Data.Tenant] = true
		}
		return seen[c.claims.Tenant] && seen[other.claims.Tenant]
	})
	c.get("/admin/events").wantProblem(lacks("admin or tenant-admin"))
	admin.get("/events").wantProblem(lacks("locks:read"))
}

func TestBadEventRequestsAreRefused(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, id := range []string{
		"1", "-1", "1-1-1", "01-1", "9007199254740992-1", "1-4294967296", "x",
		strings.Repeat("9", 4000) + "-1",
	} {
		c.get("/events", header("Last-Event-ID", id)).
			wantProblem(invalid("Last-Event-ID", "is not the id of an event"))
	}
	c.get("/events", header("Last-Event-ID", "1-1", "1-1")).
		wantProblem(invalid("Last-Event-ID", "must not be there twice"))
	for types, place := range map[string]int{
		"": 1, "lock.acquired,": 2, "lock.held": 1, "lock.acquired,events.missed,lock.unknown": 3,
		"LOCK.ACQUIRED": 1,
	} {
		c.get("/events?types=" + types).wantProblem(invalid("types", fmt.Sprintf(
			"must be types of events, separated by commas; number %d is none of %s", place, everyType,
		)))
	}
	for _, locks := range []string{"", "a,", "a%20b", "%2F", strings.Repeat("a", 257)} {
		c.get("/events?locks=" + locks).wantProblem(invalid(
			"locks", "must be patterns of lock names with at most one star each, separated by commas",
		))
	}
	c.get("/events?locks=a" + strings.Repeat(",a", 8)).
		wantProblem(invalid("locks", "must be at most 8 patterns"))
	c.get("/events?locks=*a*").wantProblem(invalid(
		"locks", "must be patterns of lock names with at most one star each, separated by commas",
	))
	c.get("/events?tenant=acme").wantProblem(invalid("tenant", notAParameter))
	c.admin().get("/admin/events?tenant=-").wantProblem(noTenant())
	c.admin().get("/admin/events?types=x").wantStatus(http.StatusBadRequest)
}

// limited are the limits of every tenant with some that differ from the standard.
func limited(o quota.Overrides) func(string) *quota.Limits {
	limits := o.Over(quota.Standard())
	return func(string) *quota.Limits { return limits }
}

// TestEventStreamsAreBounded: a tenant has so many streams, and one that has ended makes room.
func TestEventStreamsAreBounded(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := newReplica(t, func(cfg *service.Config) {
		cfg.Events, cfg.Limits = events.Config{
			Subscriptions: 3,
		}, limited(quota.Overrides{"event_streams": 2})
	})
	first := c.at(r).follow("/events")
	c.at(r).follow("/events")
	c.at(r).get("/events").wantStatus(http.StatusTooManyRequests)
	newTenant(t).at(r).follow("/events")
	if a := newTenant(t).at(r).get("/events"); a.status != http.StatusTooManyRequests ||
		!strings.Contains(string(a.body), "overloaded") {
		t.Errorf("%v, want 429 overloaded", a)
	}
	first.end()
	poll.Until(t, "there is room again", func() bool { return r.room(c) })
}

// room reports whether the tenant has room for another stream.
func (r *replica) room(c *client) bool {
	s, err := r.service.Events(context.Background(), service.EventsRequest{Of: c.claims.Tenant})
	if err == nil {
		s.Close()
	}
	return err == nil
}

// TestStreamEndsWithTokenOrReplica: a stream ends with its bearer token, and when the replica
// drains.
func TestStreamEndsWithTokenOrReplica(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := newReplica(t, func(*service.Config) {})
	short := c.at(r).with(must(auth.Sign(secret(), c.claims, time.Now(), 2*time.Second))).
		follow("/events")
	long := c.at(r).follow("/events")
	short.wantEnd()
	if got := short.lastComment(); got != "the token or certificate of the caller has expired; get a new one" {
		t.Errorf("the stream ended with %q", got)
	}
	r.service.Drain()
	long.wantEnd()
	if got := long.lastComment(); got != "this server shuts down; go on at another" {
		t.Errorf("the stream ended with %q", got)
	}
	c.at(r).get("/events").wantDraining()
}

// streaming is a replica with another HTTP layer for one test.
func streaming(t *testing.T, config func(*service.Config), change func(*handlers.Config)) *replica {
	t.Helper()
	inner := newReplica(t, config)
	h := shared.handlers(inner.service)
	h.Console = inner.console
	change(&h)
	server := httptest.NewUnstartedServer(handlers.New(h))
	server.Listener = handlers.NewConnections(100).Listener(server.Listener)
	server.Config.ConnContext = handlers.ConnContext
	server.Start()
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(r.close)
	r.service = inner.service
	return r
}

// TestHeartbeatsMoveTheEventID: a stream on which nothing happens lives for longer than an answer
// may take, and its signs of life say from where it can be resumed.
func TestHeartbeatsMoveTheEventID(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := streaming(t, func(*service.Config) {}, func(h *handlers.Config) {
		// A busy machine may stop a write for less than this, which ends the stream.
		h.AnswerTimeout, h.Heartbeat = 2*time.Second, 50*time.Millisecond
	})
	s := c.at(r).follow("/events?locks=mine")
	beats := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.comments)
	}
	poll.Until(t, "it lives for longer than the timeout", func() bool { return beats() > 50 })
	e := c.acquire("others")
	poll.Until(t, "its place moves on", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		id, err := lock.ParseEventID(s.lastID)
		return err == nil && id.Number > *e.Fence
	})
	c.acquire("mine")
	s.wants("lock.acquired mine")
}

// TestEventReaderThatStalls: the server drops a client that reads nothing, and sends to others
// meanwhile.
func TestEventReaderThatStalls(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := streaming(
		t, func(c *service.Config) { c.Limits = limited(quota.Overrides{"event_streams": 2}) },
		func(h *handlers.Config) { h.AnswerTimeout = 2 * time.Second },
	)
	stalls := dial(t, r)
	if err := stalls.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	stalls.write("GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + c.bearer + "\r\n\r\n")
	poll.Until(t, "it follows", func() bool {
		_, err := stalls.in.Peek(1)
		return err == nil
	})
	reads := c.at(r).follow("/events?types=lock.acquired")
	if r.room(c) {
		t.Fatal("it does not follow")
	}
	metadata := fmt.Sprintf(`{"metadata":{"k":%q}}`, strings.Repeat("v", 2000))
	rounds := 0
	poll.Within(t, time.Minute, "who takes nothing is dropped", func() bool {
		for range 10 {
			c.release(c.acquire("a", body(metadata)))
			rounds++
		}
		return r.room(c)
	})
	if got := len(reads.wait(rounds)); got != rounds {
		t.Errorf("the other one was told %d events, want %d", got, rounds)
	}
}

// TestHeadOfAStreamFreesTheConnection: HEAD of a stream is answered, and the connection can be used
// again.
func TestHeadOfAStreamFreesTheConnection(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	wire := dial(t, shared.main)
	for range 3 {
		wire.write("HEAD /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + c.bearer + "\r\n\r\n")
		if a, goesOn := wire.read("HEAD"); a.status != http.StatusOK || !goesOn ||
			a.header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v %v, and it goes on: %v", a, a.header, goesOn)
		}
	}
}

// TestStreamIsOneLogLine: a stream is one line in the log, at its end, and says why.
func TestStreamIsOneLogLine(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	s := c.follow("/events")
	c.acquire("a")
	s.wants("lock.acquired a")
	s.end()
	lines := func() (all []string) {
		shared.journal.mu.Lock()
		defer shared.journal.mu.Unlock()
		for _, l := range shared.journal.lines {
			if text := string(l); strings.Contains(text, c.claims.Tenant) &&
				strings.Contains(text, `"/events"`) {
				all = append(all, text)
			}
		}
		return all
	}
	poll.Until(t, "there is a line", func() bool { return len(lines()) > 0 })
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "the client is gone") {
		t.Errorf("the log has %q", got)
	}
}

// TestStreamIsNoLatency: how long a stream lasts is its client's choice, and no latency.
func TestStreamIsNoLatency(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.follow("/admin/events?tenant=nobody-else", header("Authorization", "Bearer "+c.admin().bearer)).
		end()
	counts := func(wait string) bool {
		text := string(c.get("/metrics").body)
		return strings.Contains(
			text, `duration_seconds_count{method="GET",route="/admin/events",status="2xx",wait="`+wait+`"}`,
		)
	}
	poll.Until(t, "the stream is counted", func() bool { return counts("true") || counts("false") })
	if counts("false") {
		t.Error("it counts as latency")
	}
	text := string(c.get("/metrics").body)
	for _, want := range []string{
		"fencepost_stream_establish_duration_seconds_count ", "fencepost_stream_clients ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q", want)
		}
	}
}

const everyType = "lock.enqueued, lock.acquired, lock.released, lock.expired, lock.revoked, " +
	"lock.wait_timeout, lock.deadlock_refused, lock.superseded, lock.release_requested, events.missed"
