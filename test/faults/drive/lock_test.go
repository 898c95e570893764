package drive_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
)

const secretToken = "fp1_secret"

// answer is one scripted answer; status 0 cuts the connection.
type answer struct {
	status int
	body   string
}

var (
	granted  = answer{http.StatusCreated, `{"id":"e1","state":"held","token":"` + secretToken + `","fence":7}`}
	waiting  = answer{http.StatusAccepted, `{"id":"e1","state":"waiting","token":"` + secretToken + `","position":1}`}
	held     = answer{http.StatusLocked, `{"code":"lock_held"}`}
	away     = answer{http.StatusServiceUnavailable, `{"code":"store_unavailable"}`}
	vouched  = answer{http.StatusServiceUnavailable, `{"code":"store_unavailable","may_have_taken_effect":false}`}
	cut      = answer{}
	done     = answer{http.StatusNoContent, ""}
	released = answer{http.StatusGone, `{"code":"lock_lost","reason":"released"}`}
	expired  = answer{http.StatusGone, `{"code":"lock_lost","reason":"expired"}`}
	unclear  = answer{http.StatusGone, `{"code":"lock_lost","reason":"unknown"}`}
	broken   = answer{http.StatusInternalServerError, `{"code":"internal"}`}
)

// script is a server with two addresses that gives its answers in order and
// remembers at which address it was asked.
type script struct {
	mu      sync.Mutex
	answers []answer
	asked   []string
	urls    []string
}

func play(t *testing.T, answers ...answer) *script {
	t.Helper()
	s := &script{answers: answers}
	for i := range 2 {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, i) }))
		t.Cleanup(server.Close)
		s.urls = append(s.urls, server.URL)
	}
	return s
}

func (s *script) answer(w http.ResponseWriter, r *http.Request, replica int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("%s %d", r.Method, replica))
	next := cut
	if len(s.answers) > 0 {
		next, s.answers = s.answers[0], s.answers[1:]
	}
	if next.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(next.status)
	fmt.Fprint(w, next.body)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

type told struct {
	Kind    history.Kind
	Outcome history.Outcome
	Entry   string
	Fence   int64
	Reason  string
}

// outcomes reduces a history to what is told, without times.
func outcomes(r *history.Recorder) (list []told) {
	for _, op := range r.Ops() {
		list = append(list, told{op.Kind, op.Outcome, op.Entry, op.Fence, op.Reason})
	}
	return list
}

func TestAcquire(t *testing.T) {
	grant := told{Kind: history.Acquire, Outcome: history.OK, Entry: "e1", Fence: 7}
	for _, test := range []struct {
		name    string
		answers []answer
		key     string
		asked   []string
		told    told
	}{
		{"granted", []answer{granted}, "", []string{"POST 0"}, grant},
		{"refused", []answer{held}, "k", []string{"POST 0"}, told{Kind: history.Acquire, Outcome: history.Refused}},
		{"lost without a key is final", []answer{cut, granted}, "", []string{"POST 0"}, told{Kind: history.Acquire, Outcome: history.Unknown}},
		{"lost with a key is repeated elsewhere", []answer{cut, granted}, "k", []string{"POST 0", "POST 1"}, grant},
		{"away with a key is repeated", []answer{away, cut, granted}, "k", []string{"POST 0", "POST 1", "POST 0"}, grant},
		{"vouched for without a key is repeated", []answer{vouched, granted}, "", []string{"POST 0", "POST 1"}, grant},
		{
			"vouched for after a lost one",
			[]answer{cut, vouched, vouched},
			"k",
			[]string{"POST 0", "POST 1", "POST 0"},
			told{Kind: history.Acquire, Outcome: history.Unknown},
		},
		{"still waiting is repeated", []answer{waiting, granted}, "k", []string{"POST 0", "POST 1"}, grant},
		{
			"ended meanwhile",
			[]answer{waiting, expired},
			"k",
			[]string{"POST 0", "POST 1"},
			told{Kind: history.Acquire, Outcome: history.Lost, Entry: "e1", Reason: "expired"},
		},
		{"never answered", nil, "k", []string{"POST 0", "POST 1", "POST 0"}, told{Kind: history.Acquire, Outcome: history.Unknown}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, recorder := play(t, test.answers...), history.NewRecorder()
			c := drive.NewClient(0, s.urls, "bearer", recorder, &drive.Oddities{})
			defer c.Close()
			h, outcome := c.Acquire(t.Context(), drive.Request{Lock: "l", TTL: time.Second, Key: test.key, Attempts: 3})
			if (h != nil) != (test.told.Outcome == history.OK) || outcome != test.told.Outcome {
				t.Errorf("Acquire() = %v, %s", h, outcome)
			}
			if diff := cmp.Diff(test.asked, s.requests()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]told{test.told}, outcomes(recorder)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []answer
		want    told
	}{
		{"at once", []answer{done}, told{Outcome: history.OK}},
		{"gone", []answer{expired}, told{Outcome: history.Lost, Reason: "expired"}},
		{"released by somebody", []answer{released}, told{Outcome: history.Lost, Reason: "released"}},
		{"the lost attempt did it", []answer{cut, released}, told{Outcome: history.OK, Reason: "released"}},
		{"the lost attempt did not do it", []answer{away, expired}, told{Outcome: history.Lost, Reason: "expired"}},
		{"gone, nobody knows by whom", []answer{cut, unclear}, told{Outcome: history.Unknown, Reason: "unknown"}},
		{"vouched for after a lost one", []answer{cut, vouched, vouched}, told{Outcome: history.Unknown}},
		{"never answered", nil, told{Outcome: history.Unknown}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, recorder := play(t, test.answers...), history.NewRecorder()
			c := drive.NewClient(0, s.urls, "bearer", recorder, &drive.Oddities{})
			defer c.Close()
			outcome := c.Release(t.Context(), 0, 3, &drive.Hold{Lock: "l", ID: "e1", TTL: time.Second})
			if outcome != test.want.Outcome {
				t.Errorf("Release() = %s, want %s", outcome, test.want.Outcome)
			}
			test.want.Kind, test.want.Entry = history.Release, "e1"
			if diff := cmp.Diff([]told{test.want}, outcomes(recorder)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingSentIsNothingHappened(t *testing.T) {
	s, recorder := play(t), history.NewRecorder()
	away := httptest.NewServer(nil)
	away.Close()
	c := drive.NewClient(0, []string{away.URL, away.URL}, "bearer", recorder, &drive.Oddities{})
	defer c.Close()
	h := &drive.Hold{Lock: "l", ID: "e1"}
	if got, outcome := c.Acquire(t.Context(), drive.Request{Lock: "l", Attempts: 3}); got != nil || outcome != history.Unknown {
		t.Errorf("Acquire() = %v, %s", got, outcome)
	}
	if outcome := c.Release(t.Context(), 0, 3, h); outcome != history.Unknown {
		t.Errorf("Release() = %s", outcome)
	}
	if outcome := c.Renew(t.Context(), 0, h); outcome != history.Unknown {
		t.Errorf("Renew() = %s", outcome)
	}
	if got := outcomes(recorder); got != nil {
		t.Errorf("history is %v, want nothing", got)
	}
	// Without a key a request may go to the next replica as long as it was not sent.
	s.answers = []answer{granted}
	mixed := c.With(away.URL, s.urls[0])
	defer mixed.Close()
	if got, _ := mixed.Acquire(t.Context(), drive.Request{Lock: "l", Attempts: 2}); got == nil {
		t.Error("Acquire() gave nothing although the second replica was there")
	}
}

func TestOneAttemptIsOneRequest(t *testing.T) {
	s := play(t, granted, cut, granted)
	c := drive.NewClient(0, s.urls, "bearer", history.NewRecorder(), &drive.Oddities{})
	defer c.Close()
	r := drive.Request{Lock: "l", Key: "k"}
	for range 2 { // the second goes over a connection that was used before
		c.Post(t.Context(), 0, r)
	}
	if got := s.requests(); len(got) != 2 {
		t.Errorf("2 attempts made %d requests", len(got))
	}
}

func TestOddAnswersAreReported(t *testing.T) {
	for name, odd := range map[string]answer{
		"internal error":        broken,
		"a grant of nothing":    {http.StatusCreated, `{"state":"held"}`},
		"a grant without fence": {http.StatusCreated, `{"id":"e1","state":"held","token":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, found := play(t, odd), &drive.Oddities{}
			c := drive.NewClient(0, s.urls, "bearer", history.NewRecorder(), found)
			defer c.Close()
			c.Post(t.Context(), 0, drive.Request{Lock: "l"})
			if len(found.Found()) != 1 {
				t.Errorf("Found() = %v, want one", found.Found())
			}
		})
	}
}

func TestAnswersDoNotPrintTokens(t *testing.T) {
	s := play(t, granted)
	c := drive.NewClient(0, s.urls, "bearer", history.NewRecorder(), &drive.Oddities{})
	defer c.Close()
	a := c.Post(context.Background(), 0, drive.Request{Lock: "l"})
	if text := a.String(); strings.Contains(text, secretToken) || !strings.Contains(text, "e1") {
		t.Errorf("String() = %s", text)
	}
}
