package api_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/api"
)

const fence = 1<<53 - 1 // the largest; a float64 still has it

func common() api.GrantFields {
	return api.GrantFields{
		Holder: "worker <7> & co", Token: "fp1_x", TTLSeconds: 30, ExpiresAt: "2026-01-02T15:04:35.000Z",
		EnqueuedAt: "2026-01-02T15:04:05.000Z", Metadata: map[string]string{"job": "a<b"},
	}
}

// TestStates: what a client reads is what the server wrote, by its state.
func TestStates(t *testing.T) {
	t.Parallel()
	fields := api.EntryFields{
		ID: "5mdr", Name: "orders:42", Mode: "semaphore", Limit: 3, GrantFields: common(),
	}
	one := api.SetLock{Name: "a", Mode: "shared"}
	for name, written := range map[string]any{
		"held entry": &api.Entry{
			Held: &api.HeldEntry{EntryFields: fields, State: "held", Fence: fence, WaitedSeconds: 0.25},
		},
		"waiting entry": &api.Entry{
			Waiting: &api.WaitingEntry{EntryFields: fields, State: "waiting", Position: 3},
		},
		"held set": &api.Set{Held: &api.HeldSet{
			ID: "5mdr", Locks: []api.HeldSetLock{{SetLock: one, Fence: fence}}, GrantFields: common(),
			State: "held",
		}},
		"waiting set": &api.Set{Waiting: &api.WaitingSet{
			ID: "5mdr", Locks: []api.WaitingSetLock{{SetLock: one}}, GrantFields: common(), State: "waiting", Position: 1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(written)
			if err != nil {
				t.Fatal(err)
			}
			var read any = new(api.Entry)
			if _, isSet := written.(*api.Set); isSet {
				read = new(api.Set)
			}
			if err := json.Unmarshal(text, read); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(written, read) {
				t.Errorf("%s is written, and %+v read", text, read)
			}
		})
	}
}

// TestUnknownState: a client that is older than the server must not take a state
// that it does not know for one that it does.
func TestUnknownState(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"state":"paused"}`, `{}`, `{"state":""}`, `[]`, `{"state":1}`} {
		if err := json.Unmarshal([]byte(text), new(api.Entry)); err == nil {
			t.Errorf("%s was read as an entry", text)
		}
		if err := json.Unmarshal([]byte(text), new(api.Set)); err == nil {
			t.Errorf("%s was read as a set", text)
		}
	}
}

// TestUnknownCode: one that is newer than the client is internal to it, by the table;
// what a client acts upon then is the status that it got.
func TestUnknownCode(t *testing.T) {
	t.Parallel()
	if c := api.Code("newer"); c.Status() != 500 || c.Title() == "" {
		t.Errorf("an unknown code is %d %q", c.Status(), c.Title())
	}
}

// TestPlainJSON: < stays one byte, also within what writes itself.
func TestPlainJSON(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	written := &api.Problem{
		Entry: &api.Entry{
			Waiting: &api.WaitingEntry{EntryFields: api.EntryFields{GrantFields: common()}},
		},
	}
	if err := api.Encode(&text, written); err != nil ||
		!strings.Contains(text.String(), `"worker <7> & co"`) {
		t.Errorf("Encode = %s, %v", text.String(), err)
	}
}

func TestProblemIsAnError(t *testing.T) {
	t.Parallel()
	p := &api.Problem{
		Code: api.Held, Title: api.Held.Title(), Detail: "others are in front", RequestID: "4f1a",
	}
	if got := p.Error(); got != "The lock is held: others are in front (lock_held, request 4f1a)" {
		t.Errorf("Error() = %q", got)
	}
	p.Detail = ""
	if got := p.Error(); strings.Contains(got, ": ") {
		t.Errorf("Error() without a detail = %q", got)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 16, 4, 5, 999_999_999, time.FixedZone("", 3600))
	i := api.InstantOf(at)
	if i != "2026-01-02T15:04:05.999Z" {
		t.Errorf("InstantOf = %s", i)
	}
	if back, err := i.Time(); err != nil || !back.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("Time() = %v, %v", back, err)
	}
	for d, want := range map[time.Duration]api.Seconds{
		0: 0, 1500 * time.Millisecond: 1.5, 999600 * time.Microsecond: 1, time.Hour: 3600,
	} {
		if got := api.SecondsOf(d); got != want {
			t.Errorf("SecondsOf(%v) = %v, want %v", d, got, want)
		}
	}
	if got := api.Seconds(0.25).Duration(); got != 250*time.Millisecond {
		t.Errorf("Duration() = %v", got)
	}
}

// TestDecimals: what is compared with a bound is what was sent.
func TestDecimals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Second, "1.9995": 1999500 * time.Microsecond, "2e0": 2 * time.Second, "-0": 0,
		"0.0000000001": 1,
		"1e999":        math.MaxInt64, "-1e999": -math.MaxInt64, "1e-999": 1,
	} {
		var d api.Decimal
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.Duration() != want {
			t.Errorf("%s is %v, %v; want %v", text, d.Duration(), err, want)
		}
	}
	for _, text := range []string{`"30"`, `true`, `{}`, `[1]`} {
		if err := json.Unmarshal([]byte(text), new(api.Decimal)); err == nil {
			t.Errorf("%s was read as a number", text)
		}
		if err := json.Unmarshal([]byte(text), new(api.Whole)); err == nil {
			t.Errorf("%s was read as a whole number", text)
		}
	}
}

// TestRequestRoundTrip: a client that fills a request sends numbers as numbers.
func TestRequestRoundTrip(t *testing.T) {
	t.Parallel()
	ttl, limit := api.Decimal("0.0015"), api.Whole(3)
	text, err := json.Marshal(api.AcquireBody{Limit: &limit, Terms: api.Terms{TTLSeconds: &ttl}})
	if want := `{"limit":3,"ttl_seconds":0.0015}`; err != nil || string(text) != want {
		t.Errorf("Marshal = %s, %v; want %s", text, err, want)
	}
}
