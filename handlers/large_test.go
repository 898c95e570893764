package handlers_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/handlers"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/order"
	"github.com/fencepost/fencepost/service"
	seen "github.com/fencepost/fencepost/service/figures"
	"github.com/fencepost/fencepost/service/view"
	"github.com/fencepost/fencepost/test/poll"
)

const mebibyte = 1 << 20

// largest is an entry with the longest texts that anybody can send, all of which
// grow in JSON.
func largest(name string) *lock.Entry {
	return &lock.Entry{
		ID: someID, Tenant: "acme", Holder: strings.Repeat(`"`, 100) + strings.Repeat("工", 100),
		TTL: time.Minute, EnqueuedAt: time.Now(), Number: 7,
		Claims:   []lock.Claim{{Name: name, Mode: lock.Exclusive}},
		Metadata: map[string]string{"k": strings.Repeat("<\n", 1020)},
	}
}

func holdersAt(name string, n int) []view.Holder {
	out := make([]view.Holder, n)
	for i := range out {
		out[i] = view.Holder{Entry: largest(name), Since: time.Now(), ExpiresAt: time.Now()}
	}
	return out
}

func largeView() service.LockView {
	v := service.LockView{
		Name:  "orders:42",
		Queue: view.Queue{Holders: holdersAt("orders:42", 100), Waiting: 5000, Revision: 9},
	}
	for i := range 1000 {
		v.Waiters = append(v.Waiters, view.Waiter{Entry: largest("orders:42"), Position: i + 1})
	}
	return v
}

// largePage has as many holders as the service puts on a page.
func largePage() view.Page {
	p := view.Page{Revision: 9, Next: "z"}
	for i := range 1000 {
		name := fmt.Sprintf("orders:%04d", i) + strings.Repeat("x", 180)
		p.Locks = append(p.Locks, view.Summary{Name: name, Holders: holdersAt(name, 2), Newest: 7})
	}
	return p
}

func largeReport() seen.OrderReport {
	report := seen.OrderReport{Orders: make([]order.Edge, 1000)}
	for i := range report.Orders {
		report.Orders[i] = order.Edge{
			Tenant: "acme", From: "a:*", To: "b:*", Seen: 1,
			Examples: []order.Example{{Holder: "w", At: time.Now()}},
		}
	}
	return report
}

// overRouter is like over, and gives the router too.
func overRouter(t *testing.T, s *stub, change func(*handlers.Config)) (*client, *handlers.Router) {
	t.Helper()
	config := shared.handlers(s)
	change(&config)
	router := handlers.New(config)
	r := serve(nil, router)
	t.Cleanup(r.close)
	return newTenant(t).at(r), router
}

func asIs(*handlers.Config) {}

// TestPageIsBounded: a page ends where it gets too long, and goes on there.
func TestPageIsBounded(t *testing.T) {
	t.Parallel()
	all := largePage()
	a := over(t, &stub{page: all}).get("/locks?limit=1000")
	var p page
	a.want(http.StatusOK, &p)
	last := len(p.Locks) - 1
	if len(a.body) > mebibyte || len(a.body) < mebibyte/2 || last < 100 || last >= len(all.Locks)-1 {
		t.Fatalf(
			"%d locks in %d bytes, want about 1 MiB of the %d", len(p.Locks), len(a.body), len(all.Locks),
		)
	}
	if want := "locks|" + all.Locks[last].Name; p.NextCursor !=
		base64.RawURLEncoding.EncodeToString([]byte(want)) {
		t.Errorf("next_cursor %q is not the last name", p.NextCursor)
	}
	few := all
	few.Locks, few.Next = all.Locks[:10], ""
	over(t, &stub{page: few}).get("/locks").want(http.StatusOK, &p)
}

// TestLockIsBounded: an answer that would be too long leaves out the last waiters, and counts
// them.
func TestLockIsBounded(t *testing.T) {
	t.Parallel()
	a := over(t, &stub{view: largeView()}).get("/locks/orders:42")
	var v lockView
	a.want(http.StatusOK, &v)
	if len(a.body) > mebibyte || len(v.Holders) < 50 || len(v.Waiters) < 50 ||
		len(v.Waiters) == 1000 || *v.Waiting != 5000 {
		t.Errorf(
			"%d holders and %d of %d waiters in %d bytes", len(v.Holders), len(v.Waiters), *v.Waiting,
			len(a.body),
		)
	}
	for i, w := range v.Waiters {
		if w.Position != i+1 {
			t.Fatalf("waiter %d has position %d", i, w.Position)
		}
	}
}

// TestRefusalIsBounded: the refusal of a try is bounded in bytes.
func TestRefusalIsBounded(t *testing.T) {
	t.Parallel()
	one := &service.Grant{
		Entry: largest("orders:42"), Holders: holdersAt("orders:42", 100), Waiters: 3,
	}
	many := &service.Grant{Entry: &lock.Entry{Set: true, Claims: []lock.Claim{{Name: "a"}}}}
	for place := range 32 { // most have no waiter
		b := service.Busy{
			Name: strings.Repeat("n", 200), Holders: holdersAt("n", 100), Waiters: 3 * (place / 31),
		}
		for i, h := range b.Holders {
			h.Entry.ID = lock.ID(fmt.Sprintf("%026d", 100*place+i))
		}
		many.Busy = append(many.Busy, b)
	}
	held := &lock.Error{Code: lock.Held, Detail: "x", RetryAfter: time.Second}
	for path, grant := range map[string]*service.Grant{"/locks/orders:42": one, "/locksets": many} {
		c, router := overRouter(t, &stub{err: held, grant: grant}, asIs)
		text := map[bool]string{true: oneLock, false: "{}"}[path == "/locksets"]
		a := c.post(path, body(text))
		if a.status != http.StatusLocked || len(a.body) > 256<<10 || len(a.body) < 64<<10 {
			t.Errorf("%s: %d with %d bytes", path, a.status, len(a.body))
		}
		router.Fill(c.claims.Tenant)
		if a = c.post(path, body(text)); a.status != http.StatusLocked || len(a.body) > 16<<10 ||
			!strings.Contains(string(a.body), `"waiting":3`) {
			t.Errorf("%s, when there is no room: %d with %d bytes", path, a.status, len(a.body))
		}
		if locks, set := a.fields()["locks"].([]any); set != grant.Entry.Set ||
			len(locks) != len(grant.Busy) {
			t.Errorf(
				"%s, when there is no room: %d locks are named that others hold, want %d", path, len(locks),
				len(grant.Busy),
			)
		}
	}
}

// TestLongCycleIsBounded: a refused deadlock shows the first waits of a long cycle.
func TestLongCycleIsBounded(t *testing.T) {
	t.Parallel()
	cycle := make([]lock.Wait, 10_000)
	for i := range cycle {
		cycle[i] = lock.Wait{Waiter: largest("a"), Blocker: largest("a"), Lock: "a"}
	}
	var p struct {
		Cycle []step `json:"cycle"`
	}
	a := over(
		t, &stub{err: &lock.Error{Code: lock.Deadlock, Detail: "x", Cycle: cycle}},
	).post("/locks/a")
	if err := json.Unmarshal(a.body, &p); err != nil || len(p.Cycle) != 32 {
		t.Errorf("%d waits of the cycle, %v", len(p.Cycle), err)
	}
}

// TestUnreadAnswersOfATenantAreBounded: a tenant with too many unread bytes is refused at once, and
// no other tenant is.
func TestUnreadAnswersOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	deadlocks := make([]view.Deadlock, 100)
	for i := range deadlocks {
		wait := lock.Wait{Waiter: largest("a"), Blocker: largest("a"), Lock: "a"}
		deadlocks[i] = view.Deadlock{
			Tenant: "acme", Refused: largest("a"), Cycle: []lock.Wait{wait, wait}, Waits: 2, At: time.Now(),
		}
	}
	c, router := overRouter(
		t, &stub{page: largePage(), view: largeView(), deadlocks: deadlocks, order: largeReport()}, asIs,
	)
	operator := c.as(func(c *auth.Claims) { c.Scopes = []auth.Scope{auth.Admin} })
	router.Fill(c.claims.Tenant)
	crowded := problem{
		code: "overloaded", detail: "too many large answers are under way; retry after Retry-After",
	}
	for path, as := range map[string]*client{
		"/locks": c, "/locks/orders:42": c, "/admin/deadlocks": operator,
		"/admin/lock-order?limit=1000": operator,
	} {
		a := as.get(path)
		a.wantProblem(crowded, "may_have_taken_effect")
		if a.fields()["may_have_taken_effect"] != false {
			t.Errorf("%v", a)
		}
		other := as.as(func(c *auth.Claims) { c.Tenant += "-other" }).get(path)
		if other.status != http.StatusOK || len(other.body) > mebibyte {
			t.Errorf("another tenant's %s: %d with %d bytes", path, other.status, len(other.body))
		}
	}
	poll.Until(
		t, "the others' answers are counted no more",
		func() bool { return router.InFlight() == handlers.MaxAnswersOfTenant },
	)
	away := over(
		t, &stub{err: &lock.Error{Code: lock.Overloaded, Detail: "x", RetryAfter: time.Second}},
	)
	away.post("/locks/a").wantStatus(http.StatusTooManyRequests)
	away.post("/locksets", body(oneLock)).wantStatus(http.StatusTooManyRequests)
}

// TestListsAreWithoutMetadata: sets with metadata that would grow to six times their
// size as HTML neither grow nor show it in a list.
func TestListsAreWithoutMetadata(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for i := range 3 {
		names := make([]string, 32)
		for j := range names {
			names[j] = fmt.Sprintf("set%d:%02d", i, j)
		}
		text := strings.TrimSuffix(locksOf(names...), "}") + `,"ttl_seconds":600,"metadata":{"k":"` +
			strings.Repeat("<", 2047) + `"}}`
		a := c.post("/locksets", body(text))
		if a.set(http.StatusCreated, "held"); len(a.body) > 16<<10 ||
			!strings.Contains(string(a.body), "<<<") {
			t.Errorf("the set is answered with %d bytes", len(a.body))
		}
		if a = c.post("/locksets", body(text)); a.status != http.StatusLocked || len(a.body) > 16<<10 ||
			strings.Contains(string(a.body), "metadata") {
			t.Errorf("the refusal of the set is %v", a)
		}
	}
	a := c.get("/locks?limit=1000&consistent=true")
	if len(a.body) > 96*400 || strings.Contains(string(a.body), "metadata") {
		t.Errorf("96 locks are listed in %d bytes: %.500s", len(a.body), a.body)
	}
	if v := c.look("set0:00"); len(v.Holders) != 1 ||
		v.Holders[0].Metadata["k"] != strings.Repeat("<", 2047) {
		t.Errorf("one lock is without its metadata: %+v", v)
	}
}

// narrow listens so that little of an answer fits into the buffers of a connection.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
}

// TestUnreadAnswersEnd: what clients do not read is bounded, ends, and is given back.
func TestUnreadAnswersEnd(t *testing.T) { // alone: it measures memory
	config := shared.handlers(&stub{page: largePage()})
	config.AnswerTimeout = 20 * time.Second // in which a busy machine gets all of them going
	router := handlers.New(config)
	server := httptest.NewUnstartedServer(router)
	server.Listener = narrow{server.Listener}
	server.Start()
	r := &replica{server: server, url: server.URL, transport: &http.Transport{}}
	t.Cleanup(r.close)
	c := newTenant(t).at(r)
	c.get("/locks?limit=1000")
	before := heap()
	const clients = 40
	ask := func() *conn {
		conn := dial(t, r)
		if err := conn.SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		conn.write(
			"GET /locks?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + c.bearer + "\r\n\r\n",
		)
		return conn
	}
	for range clients {
		ask()
	}
	poll.Within(t, 60*time.Second, "one is told that there is no room", func() bool {
		// not c.get: to hold a page against the document takes so long that the others are given up
		conn := ask()
		resp, err := http.ReadResponse(conn.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Close would read all there is, through a window of 4 KiB: for longer than the others last
		conn.reset()
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusTooManyRequests
	})
	if n := router.InFlight(); n > handlers.MaxAnswersOfTenant || n < handlers.MaxAnswersOfTenant/2 {
		t.Errorf(
			"%d bytes are on their way, want them near the bound of %d", n, handlers.MaxAnswersOfTenant,
		)
	}
	if grown := heap() - before; grown > 2*handlers.MaxAnswersOfTenant {
		t.Errorf("%d unread answers take %d MiB", clients, grown/mebibyte)
	}
	poll.Within(
		t, 60*time.Second, "the unread answers are given up",
		func() bool { return router.InFlight() == 0 },
	)
	if a := c.get("/locks?limit=1000"); a.status != http.StatusOK {
		t.Errorf("after them: %v", a.status)
	}
	poll.Within(
		t, 20*time.Second, "the memory is given back", func() bool { return heap()-before < 8*mebibyte },
	)
}

// heap is what is live.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools kept for one more round
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestWaitingIsNoAnswer: the time to receive an answer begins with the answer.
func TestWaitingIsNoAnswer(t *testing.T) {
	t.Parallel()
	config := shared.handlers(shared.main.service)
	config.AnswerTimeout = 2 * time.Second // a busy machine may stop a write for less than this
	r := serve(nil, handlers.New(config))
	t.Cleanup(r.close)
	c := newTenant(t).at(r)
	c.acquire("orders:42")
	conn := dial(t, r)
	head := " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
		c.bearer + "\r\n"
	for range 2 {
		text := `{"wait_seconds":2.5}`
		conn.write(
			fmt.Sprintf("POST /locks/orders:42%sContent-Length: %d\r\n\r\n%s", head, len(text), text),
		)
		if a, goesOn := conn.read(http.MethodPost); a.status != http.StatusLocked || !goesOn {
			t.Fatalf("after a wait: %v", a)
		}
	}
	c.post(
		"/locks/orders:42", body(`{"wait_seconds":2.5}`),
	) // for as long the connection has been idle
	conn.write("POST /locks/a" + head + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	if line, err := conn.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("Expect: 100-continue is answered %q, %v", line, err)
	}
	if _, err := conn.in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	conn.write("{}")
	if a, _ := conn.read(http.MethodPost); a.status != http.StatusCreated {
		t.Errorf("%v", a)
	}
}

// TestScrapesAreBounded: only a few may have a picture of all metrics.
func TestScrapesAreBounded(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	asked := make(chan struct{}, 100)
	c, _ := overRouter(t, &stub{}, func(config *handlers.Config) {
		config.Exposition = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-goOn
			shared.telemetry.MetricsHandler().ServeHTTP(w, r)
		})
	})
	var all []*pending
	for range 4 {
		all = append(all, c.start("GET", "/metrics"))
		<-asked
	}
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release) // before the replica is closed
	crowd := c.start("GET", "/metrics")
	poll.Until(t, "the fifth is answered", crowd.answered)
	crowd.wait().wantProblem(tooMany("reads of the metrics"), "may_have_taken_effect")
	release()
	for _, p := range all {
		if a := p.wait(); a.status != http.StatusOK {
			t.Errorf("%v", a.status)
		}
	}
	poll.Until(
		t, "the metrics can be asked for again",
		func() bool { return c.get("/metrics").status == http.StatusOK },
	)
}
