package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/board"
)

// watched is what a client shows that follows a watch.
type watched struct {
	t      testing.TB
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	order   []string
	rows    map[string]any
	page    map[string]any // the rest of the answer
	lost    api.Instant    // since when the store is out of sight, as told last
	deltas  int
	comment string
	beats   int // comments that say nothing but that the watch is there
}

type watchMessage struct {
	api.Seen
	Answer map[string]any `json:"answer"`
	Order  []string       `json:"order"`
	Rows   map[string]any `json:"rows"`
	Page   map[string]any `json:"page"`
}

// watch follows a watch whose rows are in the field of the answer.
func (c *client) watch(query, field string) *watched {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := c.request(ctx, "GET", "/admin/watch?"+query)
	resp, err := c.replica.transport.RoundTrip(r.Request)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		cancel()
		c.t.Fatalf("watch %s: %v %v", query, resp, err)
	}
	for _, v := range violations(r, resp, nil) {
		c.t.Errorf("watch %s: not as described: %v", query, v)
	}
	w := &watched{t: c.t, cancel: cancel, done: make(chan struct{})}
	go w.read(resp.Body, field)
	c.t.Cleanup(func() {
		cancel()
		<-w.done
		_ = resp.Body.Close()
	})
	return w
}

func (w *watched) read(body io.Reader, field string) {
	defer close(w.done)
	lines := bufio.NewReader(body)
	kind := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		w.mu.Lock()
		switch name {
		case "":
			if value != "" {
				w.comment = value
			} else if strings.HasPrefix(line, ":") {
				w.beats++
			}
		case "event":
			kind = value
		case "data":
			w.apply(kind, value, field)
		}
		w.mu.Unlock()
	}
}

// apply does what a client does with a message.
func (w *watched) apply(kind, text, field string) {
	var m watchMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Replica != replicaID || m.ServerNow == "" {
		w.t.Errorf("%s is %s: %v", kind, text, err)
		return
	}
	was := w.lost
	if w.lost = ""; m.StoreLostSince != nil {
		w.lost = *m.StoreLostSince
	}
	switch {
	case kind == "snapshot" && w.rows == nil:
		w.order, w.rows, w.page = m.Order, map[string]any{}, m.Answer
		rows, _ := m.Answer[field].([]any)
		for i, key := range m.Order {
			w.rows[key] = rows[i]
		}
		if len(rows) != len(m.Order) {
			w.t.Errorf("%d keys of %d rows", len(m.Order), len(rows))
		}
		trim(w.page, field)
	case kind == "delta" && w.rows != nil:
		w.deltas++
		maps.Copy(w.rows, m.Rows)
		if m.Order != nil {
			w.order = m.Order
		}
		if m.Page != nil {
			w.page = m.Page
		}
		if m.Rows == nil && m.Order == nil && m.Page == nil && w.lost == was {
			w.t.Errorf("a delta changes nothing: %s", text)
		}
	default:
		w.t.Errorf("a %s comes: %s", kind, text)
	}
}

// trim leaves what a delta calls the page.
func trim(answer map[string]any, field string) {
	for _, name := range []string{"revision", "server_now", "replica", "store_lost_since", field} {
		delete(answer, name)
	}
}

// shows reports whether the client shows what a GET answers.
func (w *watched) shows(a *answer, field string) bool {
	var answer map[string]any
	if err := json.Unmarshal(a.body, &answer); err != nil {
		a.t.Fatal(err)
	}
	want, _ := answer[field].([]any)
	trim(answer, field)
	w.mu.Lock()
	defer w.mu.Unlock()
	got := []any{}
	for _, key := range w.order {
		got = append(got, w.rows[key])
	}
	return (len(want) == 0 && len(got) == 0 || reflect.DeepEqual(got, want)) && reflect.DeepEqual(w.page, answer)
}

// TestWatch: whatever happens, who applies the deltas soon shows what a GET answers.
func TestWatch(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	op := c.operator()
	lasts := func(name string) option { // longer than this test on a busy machine
		return body(`{"holder":"` + name + `","wait_seconds":60,"ttl_seconds":600}`)
	}
	of := "tenant=" + c.claims.Tenant
	c.acquire("b", lasts("w0"))
	views := map[string]struct {
		path, field string
		watch       *watched
	}{
		"view=overview":                     {"/admin/overview", "", nil},
		"view=locks&sort=-waiters&limit=5":  {"/admin/locks?sort=-waiters&limit=5", "locks", nil},
		"view=lock&name=a&" + of:            {"/admin/locks/" + c.claims.Tenant + "/a", "waiters", nil},
		"view=locks&state=contended&" + of:  {"/admin/locks?state=contended", "locks", nil},
		"view=locks&search=none&limit=1000": {"/admin/locks?search=none&limit=1000", "locks", nil},
	}
	for query, v := range views {
		v.watch = op.watch(query, v.field)
		views[query] = v
	}
	check := func(when string) {
		for query, v := range views {
			eventually(t, fmt.Sprintf("%s is right %s", query, when), func() bool { return v.watch.shows(op.get(v.path), v.field) })
		}
	}
	check("at first")
	held := c.acquire("a", lasts("w1"))
	check("after a grant")
	next := c.join("a", lasts("w2"))
	c.join("a", lasts("w3"))
	check("while others wait")
	c.release(held)
	check("after a hand-over")
	c.release(next.wait().held(http.StatusCreated))
	for i := range 10 {
		c.acquire(fmt.Sprintf("c:%d", i), lasts("w4"))
	}
	op.adminLocks("state=contended", shows()) // the last row of that list goes, and nothing else changes in it
	check("after many grants")
	if w := views["view=locks&search=none&limit=1000"].watch; w.deltas != 0 {
		t.Errorf("of nothing %d changes are told", w.deltas)
	}
}

// TestWatchOfFigures: so it is with what is shown of holders, tenants and figures, each of which is told
// again when something has changed.
func TestWatchOfFigures(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	op := c.operator()
	waits := body(`{"holder":"w1","wait_seconds":60,"ttl_seconds":600}`)
	c.acquire("a", body(`{"holder":"w0","ttl_seconds":600}`))
	of := "tenant=" + c.claims.Tenant
	views := map[string]struct {
		path, field string
		watch       *watched
	}{
		"view=holders&holder=w1&" + of: {"/admin/holders?holder=w1&" + of, "", nil},
		"view=tenants":                 {"/admin/tenants", "tenants", nil},
		"view=series&" + of:            {"/admin/series?" + of, "", nil},
		"view=heatmap&" + of:           {"/admin/heatmap?" + of, "", nil},
	}
	for query, v := range views {
		v.watch = op.watch(query, v.field)
		views[query] = v
	}
	check := func(when string, deltas int) {
		for query, v := range views {
			eventually(t, fmt.Sprintf("%s is right %s", query, when), func() bool {
				shown := v.watch.shows(op.get(v.path), v.field)
				v.watch.mu.Lock()
				defer v.watch.mu.Unlock()
				return shown && v.watch.deltas >= deltas
			})
		}
	}
	check("at first", 0)
	c.join("a", waits)
	c.acquire("b", waits)
	check("after a grant and a wait", 1)
}

// TestWatchOfBlocking: who comes to stand in line is told, and how it is blamed.
func TestWatchOfBlocking(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	op := c.operator()
	c.acquire("a", body(`{"holder":"w0","ttl_seconds":600}`))
	w := op.watch("view=blocking&limit=10&tenant="+c.claims.Tenant, "")
	waiting := func(want float64) func() bool {
		return func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.page["waiting"] == want
		}
	}
	eventually(t, "nobody waits", waiting(0))
	c.join("a", body(`{"holder":"w1","wait_seconds":60,"ttl_seconds":600}`))
	c.join("a", body(`{"holder":"w2","wait_seconds":60,"ttl_seconds":600}`))
	eventually(t, "two wait", waiting(2))
	w.mu.Lock()
	defer w.mu.Unlock()
	tree := w.page["trees"].([]any)[0].(map[string]any)
	if waits := tree["waits"].([]any); tree["holder"] != "w0" || len(waits) != 2 {
		t.Errorf("told %v", tree)
	}
}

// TestSlowViews: what is dear is told once a second, to all at the same time; all else at each drawing.
func TestSlowViews(t *testing.T) {
	t.Parallel()
	second := time.Unix(1_700_000_000, 0)
	for at := time.Duration(0); at < time.Second; at += 10 * time.Millisecond {
		if next := handlers.NextTold(second.Add(at), true); !next.Equal(second.Add(time.Second)) {
			t.Errorf("at %v the next is %v", at, next.Sub(second))
		}
		if next := handlers.NextTold(second.Add(at), false); !next.Equal(board.NextDrawing(second.Add(at))) {
			t.Errorf("at %v the next of what is cheap is %v", at, next.Sub(second))
		}
	}
}

// TestSince: of a list a row that is other, one that is gone, or another order is each told by
// itself.
func TestSince(t *testing.T) {
	t.Parallel()
	type told struct {
		Changed     []string
		Order, Page bool
	}
	list := func(waiting int, names ...string) *api.AdminLockPage {
		page := &api.AdminLockPage{Matching: 2}
		for _, name := range names {
			page.Locks = append(page.Locks, api.AdminLock{Tenant: "acme", Name: name, Waiting: waiting})
		}
		return page
	}
	more := list(1, "a")
	more.Matching++
	for what, tc := range map[string]struct {
		was, is *api.AdminLockPage
		want    told
	}{
		"nothing":                {list(1, "a"), list(1, "a"), told{}},
		"a row is other":         {list(1, "a"), list(2, "a"), told{Changed: []string{"acme/a"}}},
		"the last row is gone":   {list(1, "a"), list(1), told{Order: true}},
		"one of two is gone":     {list(1, "a", "b"), list(1, "b"), told{Order: true}},
		"a row is new":           {list(1, "a"), list(1, "a", "b"), told{Changed: []string{"acme/b"}, Order: true}},
		"another order":          {list(1, "a", "b"), list(1, "b", "a"), told{Order: true}},
		"how many there are all": {list(1, "a"), more, told{Page: true}},
	} {
		var got told
		got.Changed, got.Order, got.Page = handlers.Since(tc.was, tc.is)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestWatchRefusals(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	op := c.operator()
	for query, want := range map[string]problem{
		"":                                  invalid("view", "must be one of the views that the description names"),
		"view=tokens":                       invalid("view", "must be one of the views that the description names"),
		"view=overview&sort=name":           invalid("sort", "is not known here as a query parameter"),
		"view=locks&sort=age":               invalid("sort", "must be name, waiters, oldest_wait, held_for or utilization, with a minus for the largest first"),
		"view=lock&tenant=A&name=a":         invalid("tenant", "is not a tenant's name"),
		"view=lock&tenant=acme&name=-":      invalid("name", "must be the name of a lock"),
		"view=overview&tenant=acme":         {code: "forbidden", detail: "the caller is limited to its own tenant"},
		"view=lock&tenant=acme&name=orders": {code: "forbidden", detail: "the caller is limited to its own tenant"},
	} {
		op.get("/admin/watch?" + query).wantProblem(want)
	}
	limited := c.as(func(cl *auth.Claims) { cl.Scopes, cl.Locks = []auth.Scope{auth.Admin}, []string{"a"} })
	limited.get("/admin/watch?view=lock&tenant=acme&name=b").wantProblem(problem{code: "forbidden", detail: "the caller is limited to other lock names than b"})
}

// TestWatchPlaces: an operator has twenty, all have a hundred, and one that has ended makes room.
func TestWatchPlaces(t *testing.T) {
	t.Parallel()
	r := newReplica(t, func(*service.Config) {})
	first := newTenant(t).at(r).operator()
	last := first.watch("view=overview", "")
	for range 19 {
		first.watch("view=overview", "")
	}
	first.get("/admin/watch?view=overview").wantStatus(http.StatusTooManyRequests)
	for range 4 {
		other := newTenant(t).at(r).operator()
		for range 20 {
			other.watch("view=overview", "")
		}
	}
	if a := newTenant(t).at(r).operator().get("/admin/watch?view=overview"); a.status != http.StatusTooManyRequests || !strings.Contains(string(a.body), "overloaded") {
		t.Errorf("%v, want 429 overloaded", a)
	}
	last.cancel()
	eventually(t, "there is room again", func() bool {
		resp, err := first.replica.transport.RoundTrip(first.request(t.Context(), "GET", "/admin/watch?view=overview").Request)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// TestWatchEnds: with the bearer token, and when the replica drains.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := newReplica(t, func(*service.Config) {})
	op := c.at(r).operator()
	short := op.with(must(auth.Sign(secret(), op.claims, time.Now(), 2*time.Second))).watch("view=locks", "locks")
	long := op.watch("view=locks", "locks")
	short.wantEnd("the token or certificate of the caller has expired")
	r.service.Drain()
	long.wantEnd("this server shuts down; go on at another")
	op.get("/admin/watch?view=locks").wantDraining()
}

// TestWatchShowsThatItIsThere: who looks at a page on which nothing happens learns within seconds that the server
// has stopped to answer, and not with the third of the signs of life that a stream of events has.
func TestWatchShowsThatItIsThere(t *testing.T) {
	t.Parallel()
	w := newTenant(t).at(newReplica(t, func(*service.Config) {})).operator().watch("view=locks", "locks")
	began := time.Now()
	eventually(t, "the watch says that it is there", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.beats > 0
	})
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the first sign of life came after %v", took)
	}
}

func (w *watched) wantEnd(why string) {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(20 * time.Second):
		w.t.Fatal("the watch does not end")
	}
	if w.comment != why {
		w.t.Errorf("the watch ended with %q, want %q", w.comment, why)
	}
}

// moving is a console whose page is another each time, and large.
type moving struct {
	consoleStub
	mu   sync.Mutex
	made int
}

func (m *moving) Locks(board.Query) (*board.Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	p := manyRows()
	for i := range p.Rows {
		p.Rows[i].Waiting, p.Rows[i].Oldest = m.made, &lock.Entry{Holder: "w"}
	}
	return &p, nil
}

// TestWatchOverload: a client that takes nothing is dropped, and does not hold up another that
// is told all changes.
func TestWatchOverload(t *testing.T) {
	t.Parallel()
	m := &moving{}
	r := streaming(t, func(*service.Config) {}, func(h *handlers.Config) { h.Console, h.AnswerTimeout = m, 5*time.Second })
	op := newTenant(t).at(r).operator()
	slow, err := op.replica.transport.RoundTrip(op.request(t.Context(), "GET", "/admin/watch?view=locks&limit=1000").Request)
	if err != nil {
		t.Fatal(err)
	}
	fast := op.watch("view=locks&limit=1000", "locks")
	eventually(t, "the fast one is told of changes", func() bool {
		fast.mu.Lock()
		defer fast.mu.Unlock()
		return fast.deltas >= 4
	})
	if line := shared.journal.request(t, slow.Header.Get("X-Request-Id")); line["ended"] != "the client takes nothing" {
		t.Errorf("the slow one ended with %v", line["ended"])
	}
	_ = slow.Body.Close()
}
