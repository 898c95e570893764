package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/api"
)

// TestVectors: the client does what clients/vectors says, like those in other languages.
func TestVectors(t *testing.T) {
	folder := filepath.Join("..", "clients", "vectors")
	bodies := read[map[string]any](t, filepath.Join(folder, "bodies.json"))
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	report := newReport(t)
	for _, file := range files {
		if filepath.Base(file) == "bodies.json" {
			continue
		}
		for _, v := range read[[]vector](t, file) {
			if seen[v.Name] {
				t.Errorf("there are two vectors %s", v.Name)
			}
			seen[v.Name] = true
			report(v.Name, t.Run(v.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newRun(t, &v, bodies).play() })
			}))
		}
	}
	if len(seen) < 40 {
		t.Errorf("there are %d vectors", len(seen))
	}
}

// newReport returns what writes the outcome of a vector into the file that VECTORS_REPORT names.
func newReport(t *testing.T) func(vector string, passed bool) {
	t.Helper()
	path := os.Getenv("VECTORS_REPORT")
	if path == "" {
		return func(string, bool) {}
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return func(vector string, passed bool) {
		outcome := "failed"
		if passed {
			outcome = "ok"
		}
		fmt.Fprintf(file, "%s\t%s\n", vector, outcome)
	}
}

// The format is explained in clients/vectors/README.md.
type vector struct {
	Name, About string
	Config      struct {
		URLs        []string
		RetryFor    float64 `json:"retry_for"`
		Clock       string
		Traceparent string
	}
	Steps  []step
	Server []exchange
	Until  float64
}

type step struct {
	At     float64
	Do     string
	As, Of string

	Name           string
	Claims         []Claim
	TTL            float64
	Wait           float64
	Mode           string
	Limit, Permits int
	Any            int
	OnlyNewest     bool    `json:"only_newest"`
	AtLeast        float64 `json:"at_least"`
	Holder         string
	Metadata       map[string]string
	RequestRelease float64 `json:"request_release"`
	Margin         float64
	Token          string // of adopt
	CallbackURL    string `json:"callback_url"`
	Event          any

	Prefix, State string
	Types, Locks  []string
	After         string
	Presented     uint64 `json:"fence_presented"`
	Known         uint64 `json:"fence_known"`
	Resource      string
	Secrets       []string
	Headers       map[string]string
	Payload       string
	Seconds       float64
	Now           int64 // of verify

	Result           *outcome
	Lost             *outcome
	ReleaseRequested []asked `json:"release_requested"`
}

type outcome struct {
	At        bounds
	Error     map[string]any
	Fence     uint64
	Fences    map[string]uint64
	Names     []string
	Events    []seenEvent
	Terms     []term
	Waiting   *int
	Reason    string
	RevokedBy string `json:"revoke_reason"`
	Type, ID  string
}

type asked struct {
	At bounds
	By string
}

type seenEvent struct {
	At       bounds
	ID, Type string
}

type term struct {
	Fence     uint64
	At, Ended bounds
}

// bounds of a time: a number is exact to 50 ms.
type bounds []float64

func (b *bounds) UnmarshalJSON(text []byte) error {
	var one float64
	if json.Unmarshal(text, &one) == nil {
		*b = bounds{one, one}
		return nil
	}
	return json.Unmarshal(text, (*[]float64)(b))
}

func (b bounds) include(at float64) bool {
	const slack = 0.05
	return b == nil || at >= b[0]-slack && at <= b[1]+slack
}

type exchange struct {
	At       bounds
	During   []float64
	Least    int
	Request  string
	Key      string
	Token    string
	Headers  map[string]string
	Send     any
	Status   int
	Answer   map[string]string // headers
	Body     any
	Delay    float64
	Fault    string
	GivenUp  bounds `json:"given_up"`
	Stream   []chunk
	answered int
}

type chunk struct {
	After float64
	Text  string
}

func read[T any](t *testing.T, file string) (value T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return value
}

// run plays one vector in virtual time.
type run struct {
	t      *testing.T
	v      *vector
	bodies map[string]any
	client *Client
	start  time.Time

	mu       sync.Mutex
	next     int               // of v.Server
	bound    map[string]string // what $names stand for
	paused   time.Time         // until then nothing of the client runs
	slept    time.Duration     // that the monotonic clock does not show
	wall     time.Duration     // by which the wall clock was set
	held     map[string]*Held
	pending  map[string]*Pending
	cancels  map[string]context.CancelFunc
	finished sync.WaitGroup
}

func newRun(t *testing.T, v *vector, bodies map[string]any) *run {
	r := &run{
		t: t, v: v, bodies: bodies, start: time.Now(), bound: map[string]string{},
		held: map[string]*Held{}, pending: map[string]*Pending{},
		cancels: map[string]context.CancelFunc{},
	}
	urls := v.Config.URLs
	if urls == nil {
		urls = []string{"http://a"}
	}
	c, err := New(Config{
		URLs: urls, Token: Bearer("T"), HTTP: &http.Client{Transport: r},
		RetryFor: secs(v.Config.RetryFor), Logger: slog.New(slog.DiscardHandler), clock: r.read,
		Propagate: func(_ context.Context, header http.Header) {
			if v.Config.Traceparent != "" {
				header.Set("traceparent", v.Config.Traceparent)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.client = c
	return r
}

func secs(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (r *run) now() float64 { return time.Since(r.start).Seconds() }

// wait lets virtual time pass.
func (r *run) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gate blocks while the process is paused.
func (r *run) gate() {
	for {
		r.mu.Lock()
		left := time.Until(r.paused)
		r.mu.Unlock()
		if left <= 0 {
			return
		}
		_ = r.wait(context.Background(), left)
	}
}

// read is the clock of the client.
func (r *run) read() reading {
	r.gate()
	r.mu.Lock()
	defer r.mu.Unlock()
	passed := time.Since(r.start)
	now := reading{monotonic: passed, wall: time.Hour + passed + r.slept + r.wall}
	if r.v.Config.Clock != "wall" {
		now.boot = time.Minute + passed + r.slept
	}
	return now
}

func (r *run) play() {
	for i := range r.v.Steps {
		s := &r.v.Steps[i]
		_ = r.wait(context.Background(), secs(s.At)-time.Since(r.start))
		r.do(s)
		synctest.Wait()
	}
	_ = r.wait(context.Background(), secs(r.v.Until)-time.Since(r.start))
	synctest.Wait()
	r.mu.Lock()
	r.next = max(r.next, len(r.v.Server)-r.open()) // what follows is not looked at
	for i := r.next; i < len(r.v.Server); i++ {
		r.t.Errorf("request %d did not come: %s", i+1, r.v.Server[i].Request)
	}
	r.next = -1
	cancels := slices.Collect(maps.Values(r.cancels))
	r.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	_ = r.client.Close()
	r.finished.Wait()
	for _, s := range r.v.Steps {
		for _, a := range s.ReleaseRequested {
			r.t.Errorf("%s does not ask %s for the release", a.By, s.As)
		}
	}
}

// open counts the exchanges at the end that are still due.
func (r *run) open() int {
	rest := r.v.Server[r.next:]
	if len(rest) > 0 && rest[0].During != nil && rest[0].answered >= max(1, rest[0].Least) {
		return len(rest) - 1
	}
	return len(rest)
}

func (r *run) do(s *step) {
	switch s.Do {
	case "pause":
		r.mu.Lock()
		r.paused = time.Now().Add(secs(s.Seconds))
		r.mu.Unlock()
	case "suspend":
		r.mu.Lock()
		r.slept += secs(s.Seconds)
		r.mu.Unlock()
	case "wall":
		r.mu.Lock()
		r.wall += secs(s.Seconds)
		r.mu.Unlock()
	case "cancel", "resign":
		r.mu.Lock()
		cancel := r.cancels[s.Of]
		if s.Do == "resign" {
			cancel = r.cancels[s.Of+"-work"]
		}
		r.mu.Unlock()
		cancel()
	default:
		r.call(s)
	}
}

// call runs a call of the client beside the others, and compares how it ends.
func (r *run) call(s *step) {
	ctx, cancel := context.WithCancel(context.Background())
	r.mu.Lock()
	r.cancels[s.As] = cancel
	r.mu.Unlock()
	begin := map[string]func(context.Context, *step) (*outcome, error){
		"lock": r.lock, "try_lock": r.lock, "lock_set": r.lock, "try_lock_set": r.lock, "claim": r.lock,
		"lock_any": r.lock, "try_lock_any": r.lock,
		"adopt": r.lock, "wait": r.lock, "async": r.async, "leave": r.leave,
		"release": r.release, "check": r.check,
		"look": r.look, "list": r.list, "events": r.events, "stale_write": r.staleWrite,
		"verify": r.verify, "lead": r.lead, "close": r.close,
	}[s.Do]
	if begin == nil {
		r.t.Fatalf("there is no step %q", s.Do)
	}
	r.finished.Go(func() {
		got, err := begin(ctx, s)
		if err != nil {
			cancel()
		}
		r.compare(s, got, err)
	})
}

func (s *step) options(r *run) Options {
	return Options{
		TTL: secs(s.TTL), Wait: secs(s.Wait), Mode: s.Mode, Limit: s.Limit, Holder: s.Holder,
		Permits: s.Permits, OnlyNewest: s.OnlyNewest, AtLeast: secs(s.AtLeast),
		Metadata: s.Metadata, RequestRelease: secs(s.RequestRelease), Margin: secs(s.Margin),
		OnReleaseRequested: func(a api.ReleaseRequested) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(s.ReleaseRequested) == 0 {
				r.t.Errorf("%.3f: %s asks for the release, which is not expected", r.now(), a.By)
				return
			}
			want := s.ReleaseRequested[0]
			if s.ReleaseRequested = s.ReleaseRequested[1:]; want.By != a.By || !want.At.include(r.now()) {
				r.t.Errorf("%.3f: %s asks for the release, want %+v", r.now(), a.By, want)
			}
		},
	}
}

func (r *run) lock(ctx context.Context, s *step) (*outcome, error) {
	var h *Held
	var err error
	switch s.Do {
	case "lock":
		h, err = r.client.Lock(ctx, s.Name, s.options(r))
	case "try_lock":
		h, err = r.client.TryLock(ctx, s.Name, s.options(r))
	case "lock_set":
		h, err = r.client.LockSet(ctx, s.Claims, s.options(r))
	case "try_lock_set":
		h, err = r.client.TryLockSet(ctx, s.Claims, s.options(r))
	case "lock_any":
		h, err = r.client.LockAny(ctx, s.Claims, s.Any, s.options(r))
	case "try_lock_any":
		h, err = r.client.TryLockAny(ctx, s.Claims, s.Any, s.options(r))
	case "adopt":
		h, err = r.client.Adopt(ctx, s.Name, s.Token, s.options(r))
	case "wait":
		h, err = r.pending[s.Of].Wait(ctx)
	case "claim":
		text, _ := json.Marshal(r.body(s.Event))
		event := new(api.Event)
		if err := json.Unmarshal(text, event); err != nil {
			r.t.Error(err)
		}
		h, err = r.client.Claim(ctx, event, s.options(r))
	}
	if err != nil {
		return &outcome{}, err
	}
	r.mu.Lock()
	r.held[s.As] = h
	r.mu.Unlock()
	r.finished.Go(func() { r.follow(s, h) })
	o := &outcome{Fence: h.Fence()}
	if s.Claims != nil {
		o.Fence, o.Fences = 0, h.Fences()
	}
	return o, nil
}

// follow compares when and why the work is stopped.
func (r *run) follow(s *step, h *Held) {
	<-h.Context().Done()
	var lost *LostError
	switch at := r.now(); {
	case !errors.As(context.Cause(h.Context()), &lost) || lost.Reason == ReasonClosed:
		if s.Lost != nil {
			r.t.Errorf("%s is not lost", s.As)
		}
	case s.Lost == nil:
		r.t.Errorf("%.3f: %s is lost: %v", at, s.As, lost)
	case !s.Lost.At.include(at), s.Lost.Reason != lost.Reason, s.Lost.RevokedBy != lost.RevokeReason:
		r.t.Errorf("%.3f: %s is lost: %v, want %+v", at, s.As, lost, s.Lost)
	}
}

func (r *run) async(ctx context.Context, s *step) (*outcome, error) {
	p, err := r.client.AsyncAcquire(ctx, s.Name, s.CallbackURL, s.options(r))
	if err != nil {
		return &outcome{}, err
	}
	r.pending[s.As] = p
	return &outcome{ID: p.ID()}, nil
}

func (r *run) leave(ctx context.Context, s *step) (*outcome, error) {
	return &outcome{}, r.pending[s.Of].Leave(ctx)
}

func (r *run) release(ctx context.Context, s *step) (*outcome, error) {
	return &outcome{}, r.held[s.Of].Release(ctx)
}

func (r *run) check(_ context.Context, s *step) (*outcome, error) {
	err := r.held[s.Of].Check()
	if errors.Is(err, errReleased) {
		err = &Error{Problem: api.Problem{Code: "released"}}
	}
	return &outcome{}, err
}

func (r *run) close(context.Context, *step) (*outcome, error) {
	return &outcome{}, r.client.Close()
}

func (r *run) look(ctx context.Context, s *step) (*outcome, error) {
	l, err := r.client.Look(ctx, s.Name)
	if err != nil {
		return &outcome{}, err
	}
	return &outcome{Fence: l.Fence, Waiting: &l.Waiting}, nil
}

func (r *run) list(ctx context.Context, s *step) (*outcome, error) {
	o := &outcome{}
	for l, err := range r.client.List(ctx, s.Prefix, s.State) {
		if err != nil {
			return o, err
		}
		o.Names = append(o.Names, l.Name)
	}
	return o, nil
}

func (r *run) events(ctx context.Context, s *step) (*outcome, error) {
	o := &outcome{Events: []seenEvent{}}
	want := s.Result.Events
	filter := EventFilter{Types: s.Types, Locks: s.Locks, After: s.After}
	for e, err := range r.client.Events(ctx, filter) {
		if err != nil {
			return o, err
		}
		got := seenEvent{ID: e.ID, Type: e.Type}
		if i := len(o.Events); i < len(want) && want[i].At.include(r.now()) {
			got.At = want[i].At
		} else {
			r.t.Errorf("%.3f: unexpected event %s", r.now(), e.ID)
		}
		o.Events = append(o.Events, got)
	}
	return o, nil
}

func (r *run) staleWrite(ctx context.Context, s *step) (*outcome, error) {
	return &outcome{}, r.client.StaleWrite(ctx, s.Name, s.Presented, s.Known, s.Resource)
}

func (r *run) verify(_ context.Context, s *step) (*outcome, error) {
	header := http.Header{}
	for name, value := range s.Headers {
		header.Set(name, value)
	}
	e, err := verifyAt(time.Unix(s.Now, 0), header, []byte(s.Payload), s.Secrets)
	if err != nil {
		return &outcome{}, err
	}
	return &outcome{ID: e.ID, Type: e.Type}, nil
}

func (r *run) lead(ctx context.Context, s *step) (*outcome, error) {
	o := &outcome{Terms: []term{}}
	resign := make(chan struct{})
	r.mu.Lock()
	r.cancels[s.As+"-work"] = sync.OnceFunc(func() { close(resign) })
	r.mu.Unlock()
	err := r.client.Lead(ctx, s.Name, s.options(r), func(ctx context.Context, held *Held) error {
		got, want := term{Fence: held.Fence()}, term{}
		if i := len(o.Terms); i < len(s.Result.Terms) {
			want = s.Result.Terms[i]
		}
		if want.At.include(r.now()) {
			got.At = want.At
		}
		select {
		case <-ctx.Done():
		case <-resign:
		}
		if want.Ended.include(r.now()) {
			got.Ended = want.Ended
		}
		o.Terms = append(o.Terms, got)
		return nil
	})
	return o, err
}

// compare compares how a call ended with what is said of it.
func (r *run) compare(s *step, got *outcome, err error) {
	at, want := r.now(), s.Result
	r.mu.Lock()
	over := r.next < 0
	r.mu.Unlock()
	switch {
	case over && want != nil && want.At == nil && want.Error == nil: // it was to go on
		if !reflect.DeepEqual(got.Events, want.Events) {
			r.t.Errorf("%s %s has seen %+v, want %+v", s.Do, s.As, got.Events, want.Events)
		}
		return
	case want == nil:
		r.t.Errorf("%.3f: %s %s%s ends and has no result: %v", at, s.Do, s.As, s.Of, err)
		return
	case over:
		r.t.Errorf("%s %s%s does not end", s.Do, s.As, s.Of)
		return
	case !want.At.include(at):
		r.t.Errorf("%.3f: %s %s%s ends with %v, want it at %v", at, s.Do, s.As, s.Of, err, want.At)
	}
	if fault := differs(want.Error, err); fault != "" {
		r.t.Errorf("%.3f: %s %s%s: %s", at, s.Do, s.As, s.Of, fault)
	}
	expect := *want
	expect.At, expect.Error = nil, nil
	if err == nil && expect.Fence == 0 && expect.Fences == nil {
		got.Fence, got.Fences = 0, nil
	}
	if expect.Waiting == nil {
		got.Waiting = nil
	}
	if !reflect.DeepEqual(got, &expect) {
		r.t.Errorf("%.3f: %s %s%s gives %+v, want %+v", at, s.Do, s.As, s.Of, *got, expect)
	}
}

// differs says in what an error is not the expected one.
func differs(want map[string]any, err error) string {
	if (want == nil) != (err == nil) {
		return fmt.Sprintf("error %v, want %v", err, want)
	}
	got := map[string]any{"code": string(CodeOf(err))}
	var lost *LostError
	var e *Error
	switch {
	case errors.As(err, &lost):
		got["reason"], got["revoke_reason"] = lost.Reason, lost.RevokeReason
		got["request_id"] = lost.RequestID
	case errors.As(err, &e):
		got["status"], got["retry_after"] = float64(e.Status), e.RetryAfter.Seconds()
		got["request_id"], got["reason"] = e.RequestID, e.Reason
		if len(e.Holders) > 0 {
			got["holder"] = e.Holders[0].Holder
		}
	}
	for name, value := range want {
		if got[name] != value {
			return fmt.Sprintf("error %v has %s=%v, want %v", err, name, got[name], value)
		}
	}
	return ""
}

// body returns what a body's name stands for.
func (r *run) body(b any) any {
	name, named := b.(string)
	if !named {
		return b
	}
	known, found := r.bodies[name]
	if !found {
		r.t.Errorf("there is no body %q", name)
	}
	return known
}

// RoundTrip answers a request as the script says.
func (r *run) RoundTrip(req *http.Request) (*http.Response, error) {
	arrived := r.now()
	e := r.take(req, arrived)
	if e == nil {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	delay := secs(e.Delay)
	if e.Fault == "hang" {
		delay = time.Hour
	}
	err := r.wait(req.Context(), delay)
	switch {
	case err != nil && !e.GivenUp.include(r.now()), err == nil && e.GivenUp != nil,
		err != nil && e.GivenUp == nil && e.Fault != "hang":
		r.t.Errorf("%.3f: given up: %v, want %v: %s", r.now(), err, e.GivenUp, e.Request)
	}
	r.gate()
	if err != nil {
		return nil, err
	}
	if e.Fault == "cut" {
		return nil, errors.New("connection reset")
	}
	return r.respond(req, e), nil
}

func (r *run) respond(req *http.Request, e *exchange) *http.Response {
	response := &http.Response{
		StatusCode: e.Status, Header: http.Header{}, ProtoMajor: 1, ProtoMinor: 1, Request: req,
	}
	for name, value := range e.Answer {
		response.Header.Set(name, value)
	}
	text := []byte(nil)
	switch b := r.body(orEmpty(e.Body)).(type) {
	case string:
		text = []byte(b)
	default:
		text, _ = json.Marshal(b)
	}
	switch {
	case e.Stream != nil:
		response.Body = &streamBody{r, req.Context(), e.Stream, e.Fault == "cut-body"}
	case e.Fault == "cut-body":
		half := bytes.NewReader(text[:len(text)/2])
		response.Body = io.NopCloser(io.MultiReader(half, &streamBody{r, req.Context(), nil, true}))
	default:
		response.Body = io.NopCloser(bytes.NewReader(text))
	}
	return response
}

func orEmpty(b any) any {
	if b == nil {
		return map[string]any{}
	}
	return b
}

// streamBody sends its chunks in time, and then ends or is cut.
type streamBody struct {
	run    *run
	ctx    context.Context
	chunks []chunk
	cut    bool
}

func (b *streamBody) Close() error { return nil }

func (b *streamBody) Read(p []byte) (int, error) {
	if len(b.chunks) == 0 && b.cut {
		return 0, io.ErrUnexpectedEOF
	}
	if len(b.chunks) == 0 {
		return 0, io.EOF
	}
	c := &b.chunks[0]
	if err := b.run.wait(b.ctx, secs(c.After)); err != nil {
		return 0, err
	}
	b.run.gate()
	n := copy(p, c.Text)
	if c.After, c.Text = 0, c.Text[n:]; c.Text == "" {
		b.chunks = b.chunks[1:]
	}
	return n, nil
}

// take finds the exchange of a request, and compares the request with it.
func (r *run) take(req *http.Request, at float64) *exchange {
	var sent any
	if req.Body != nil {
		text, _ := io.ReadAll(req.Body)
		if err := json.Unmarshal(text, &sent); err != nil {
			r.t.Error(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next < 0 {
		return nil
	}
	is := req.Method + " " + req.URL.String()
	if r.next < len(r.v.Server) {
		if e := &r.v.Server[r.next]; e.During != nil && at > e.During[1] {
			if e.answered < e.Least {
				r.t.Errorf("%d requests came, want %d: %s", e.answered, e.Least, e.Request)
			}
			r.next++
		}
	}
	if r.next >= len(r.v.Server) {
		r.t.Errorf("%.3f: unexpected request %s", at, is)
		return nil
	}
	e := &r.v.Server[r.next]
	if e.answered++; e.During == nil {
		r.next++
	} else {
		e.At = e.During
	}
	want := strings.Replace(e.Request, "http://*", "http://"+req.URL.Host, 1)
	if !sameRequest(want, is) || !e.At.include(at) {
		r.t.Errorf("%.3f: request %s, want %s at %v", at, is, e.Request, e.At)
	}
	r.compareHeaders(req, e, sent != nil)
	if !r.matches(e.Send, sent) {
		text, _ := json.Marshal(sent)
		r.t.Errorf("%.3f: %s sends %s, want %v", at, is, text, e.Send)
	}
	return e
}

// sameRequest compares two methods and URLs, with the parameters of the query in any order.
func sameRequest(a, b string) bool {
	pathA, queryA, _ := strings.Cut(a, "?")
	pathB, queryB, _ := strings.Cut(b, "?")
	valuesA, errA := url.ParseQuery(queryA)
	valuesB, errB := url.ParseQuery(queryB)
	return pathA == pathB && errA == nil && errB == nil && reflect.DeepEqual(valuesA, valuesB)
}

func (r *run) compareHeaders(req *http.Request, e *exchange, sent bool) {
	want := map[string]string{
		"Authorization": "Bearer T", "Idempotency-Key": e.Key, "Lock-Token": e.Token,
		"Last-Event-Id": "", "Content-Type": "", "Traceparent": "",
	}
	if sent {
		want["Content-Type"] = "application/json"
	}
	for name, value := range e.Headers {
		want[http.CanonicalHeaderKey(name)] = value
	}
	for name, value := range want {
		if got := req.Header.Get(name); !r.matches(value, got) {
			r.t.Errorf("%.3f: %s has %s %q, want %q", r.now(), e.Request, name, got, value)
		}
	}
}

// matches compares JSON values. A string that begins with $ is equal to what it stood for before,
// or to anything new.
func (r *run) matches(want, got any) bool {
	switch w := want.(type) {
	case string:
		g, isText := got.(string)
		if !strings.HasPrefix(w, "$") || !isText {
			return want == got
		}
		if known, bound := r.bound[w]; bound {
			return known == g
		}
		for _, other := range r.bound {
			if other == g {
				return false // another name stands for it
			}
		}
		r.bound[w] = g
		return g != ""
	case map[string]any:
		g, isMap := got.(map[string]any)
		if !isMap || len(w) != len(g) {
			return false
		}
		for k := range w {
			if _, there := g[k]; !there || !r.matches(w[k], g[k]) {
				return false
			}
		}
		return true
	case []any:
		g, isList := got.([]any)
		return isList && slices.EqualFunc(w, g, r.matches)
	}
	return want == got
}
