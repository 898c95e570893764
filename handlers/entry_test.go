package handlers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// The types below repeat the answers of the contract. They are decoded strictly, so a field that
// the contract does not have is a failure too.

type entry struct {
	ID            string            `json:"id"`
	Name          string            `json:"name"`
	State         string            `json:"state"`
	Mode          string            `json:"mode"`
	Limit         int               `json:"limit"`
	Permits       int               `json:"permits"`
	Holder        string            `json:"holder"`
	Token         string            `json:"token"`
	Fence         *uint64           `json:"fence"`
	Position      *int              `json:"position"`
	WaitUntil     instant           `json:"wait_until"`
	WaitedSeconds *float64          `json:"waited_seconds"`
	TTLSeconds    *float64          `json:"ttl_seconds"`
	ExpiresAt     instant           `json:"expires_at"`
	EnqueuedAt    instant           `json:"enqueued_at"`
	Metadata      map[string]string `json:"metadata"`
	Asked         *asked            `json:"release_requested"`
}

type asked struct {
	Since    instant `json:"since"`
	By       string  `json:"by"`
	Waiting  int     `json:"waiting"`
	WishedAt instant `json:"wished_at"`
}

type holder struct {
	Holder    string            `json:"holder"`
	Since     instant           `json:"since"`
	ExpiresAt instant           `json:"expires_at"`
	Fence     uint64            `json:"fence"`
	Mode      string            `json:"mode"`
	Limit     int               `json:"limit"`
	Permits   int               `json:"permits"`
	Metadata  map[string]string `json:"metadata"`
}

type waiter struct {
	Position      int               `json:"position"`
	Holder        string            `json:"holder"`
	Mode          string            `json:"mode"`
	Limit         int               `json:"limit"`
	Permits       int               `json:"permits"`
	PermitsBefore int               `json:"permits_before"`
	EnqueuedAt    instant           `json:"enqueued_at"`
	WaitedSeconds *float64          `json:"waited_seconds"`
	Metadata      map[string]string `json:"metadata"`
}

type percentiles struct {
	P50 *float64 `json:"p50"`
	P90 *float64 `json:"p90"`
	P99 *float64 `json:"p99"`
}

type figures struct {
	Acquisitions          *uint64      `json:"acquisitions"`
	Expirations           *uint64      `json:"expirations"`
	WaitSeconds           *percentiles `json:"wait_seconds"`
	HoldSeconds           *percentiles `json:"hold_seconds"`
	RecommendedTTLSeconds *float64     `json:"recommended_ttl_seconds"`
}

type lockView struct {
	Name     string   `json:"name"`
	Holders  []holder `json:"holders"`
	Waiters  []waiter `json:"waiters"`
	Waiting  *int     `json:"waiting"`
	Fence    uint64   `json:"fence"`
	Figures  figures  `json:"figures"`
	Asked    *asked   `json:"release_requested"`
	Permits  int      `json:"permits_held"`
	Limits   []int    `json:"limits"`
	Differ   *instant `json:"limits_differ_since"`
	Revision uint64   `json:"revision"`
}

type summary struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	Holders []holder `json:"holders"`
	Waiting *int     `json:"waiting"`
	Fence   uint64   `json:"fence"`
}

type page struct {
	Locks      []summary `json:"locks"`
	NextCursor string    `json:"next_cursor"`
	Revision   uint64    `json:"revision"`
}

// instant is RFC 3339 in UTC with milliseconds, and nothing else.
type instant struct{ time.Time }

var instantShape = regexp.MustCompile(`^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"$`)

func (i *instant) UnmarshalJSON(text []byte) error {
	if !instantShape.Match(text) {
		return fmt.Errorf("%s is not an instant in UTC with milliseconds", text)
	}
	return i.Time.UnmarshalJSON(text)
}

func unmarshalNumbers(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the value")
	}
	return nil
}

// held checks an answer with an entry that holds, and returns the entry.
func (a *answer) held(status int) entry {
	a.t.Helper()
	var e entry
	a.want(status, &e)
	a.checkEntry(e)
	if e.State != "held" || e.Fence == nil || e.WaitedSeconds == nil || e.Position != nil {
		a.t.Fatalf("%v: want held, with fence and waited_seconds and no position", a)
	}
	if *e.Fence == 0 || *e.Fence >= 1<<53 {
		a.t.Errorf("%v: fence = %d, want it from 1 to 2^53", a, *e.Fence)
	}
	return e
}

// waiting checks an answer with an entry that waits, and returns the entry.
func (a *answer) waiting(status int) entry {
	a.t.Helper()
	var e entry
	a.want(status, &e)
	a.checkEntry(e)
	if e.State != "waiting" || e.Fence != nil || e.WaitedSeconds != nil || e.Position == nil ||
		*e.Position < 1 {
		a.t.Fatalf("%v: want waiting, with a position and neither fence nor waited_seconds", a)
	}
	return e
}

// checkEntry holds an entry against what is true of all entries.
func (a *answer) checkEntry(e entry) {
	a.t.Helper()
	if e.ID == "" || e.Token == "" || e.Mode == "" || e.TTLSeconds == nil || e.Holder == "" {
		a.t.Errorf("%v: want an id, a token, a holder, a TTL and the mode", a)
		return
	}
	if e.EnqueuedAt.IsZero() || e.EnqueuedAt.After(a.received) {
		a.t.Errorf("%v: enqueued_at lies in the future", a)
	}
	ttl := time.Duration(*e.TTLSeconds * float64(time.Second))
	if e.ExpiresAt.IsZero() || e.ExpiresAt.After(a.received.Add(ttl)) {
		a.t.Errorf("%v: expires_at promises more than the TTL", a)
	}
	a.checkLocation(e)
}

// checkLocation: answers that may have to be come back to say where.
func (a *answer) checkLocation(e entry) {
	a.t.Helper()
	want := "/locks/" + e.Name + "/entries/" + e.ID
	due := a.method == http.MethodPost
	if got := a.header.Get("Location"); due && got != want {
		a.t.Errorf("%v: Location = %q, want %q", a, got, want)
	}
}

// wantFullTTL: the lease starts no earlier than the request, to the millisecond
// that the answer drops.
func (a *answer) wantFullTTL(e entry, slack time.Duration) {
	a.t.Helper()
	ttl := time.Duration(*e.TTLSeconds * float64(time.Second))
	if left := e.ExpiresAt.Sub(a.sent) + slack + time.Millisecond; left < ttl {
		a.t.Errorf("%v: expires_at is %v after the request, want %v", a, left, ttl)
	}
}

// waited returns the time, or 0 if it is longer than the request took: an entry of a busy replica
// waits for its view.
func (a *answer) waited(seconds *float64) *float64 {
	if seconds == nil || *seconds > a.received.Sub(a.sent).Seconds() {
		return ptr(0.0)
	}
	return seconds
}

// acquire takes the lock at once.
func (c *client) acquire(name string, o ...option) entry {
	c.t.Helper()
	return c.post("/locks/"+name, o...).held(http.StatusCreated)
}

func (c *client) release(e entry) {
	c.t.Helper()
	c.delete("/locks/"+e.Name, lockToken(e.Token)).wantNoContent()
}

// join starts to wait for the lock and returns when it has its place in the
// queue, which is the last.
func (c *client) join(name string, o ...option) *pending {
	c.t.Helper()
	before := *c.look(name).Waiting
	p := c.start("POST", "/locks/"+name, append([]option{body(`{"wait_seconds":60}`)}, o...)...)
	c.awaitWaiting(name, before+1)
	return p
}

// look returns the lock as it is now.
func (c *client) look(name string) lockView {
	c.t.Helper()
	var v lockView
	c.get("/locks/"+name+"?consistent=true").want(http.StatusOK, &v)
	if v.Waiting == nil || v.Holders == nil || v.Waiters == nil || v.Revision == 0 {
		c.t.Fatalf("GET %s = %+v: want holders, waiters, waiting and a revision", name, v)
	}
	return v
}

func (c *client) awaitWaiting(name string, n int) {
	c.t.Helper()
	poll.Until(
		c.t, fmt.Sprintf("%d wait for %s", n, name), func() bool { return *c.look(name).Waiting == n },
	)
}

func entryPath(e entry) string { return "/locks/" + e.Name + "/entries/" + e.ID }

func ptr[T any](v T) *T { return &v }
