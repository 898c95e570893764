package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/auth"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

const oneLock = `{"locks":[{"name":"a"}]}`

// setRoutes are the routes of lock sets, with a body that each of them takes.
func setRoutes(id string) map[route]string {
	return map[route]string{
		{"Acquire", "POST", "/locksets"}:               oneLock,
		{"Renew", "PUT", "/locksets/" + id + "/renew"}: "{}",
		{"Release", "DELETE", "/locksets/" + id}:       "{}",
		{"Entry", "GET", "/locksets/" + id}:            "{}",
	}
}

// TestSetsOnBadDays: lock sets give the problems that single locks give.
func TestSetsOnBadDays(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	const id = someID
	for r, text := range setRoutes(id) {
		c.with("nonsense").do(r.method, r.path, body(text), lockToken(someToken)).wantStatus(http.StatusUnauthorized)
		c.do(r.method, r.path, body(strings.Repeat(" ", 17<<10)+text), lockToken(someToken), loose).wantStatus(http.StatusRequestEntityTooLarge)
		c.do(r.method, r.path, body(text), header("Content-Type", "text/plain"), lockToken(someToken), loose).wantStatus(http.StatusUnsupportedMediaType)
		if r.method != http.MethodPost {
			c.do(r.method, r.path, loose).wantStatus(http.StatusBadRequest)
		}
		o := []option{lockToken(someToken)}
		if r.method == http.MethodPost {
			o = []option{body(text)}
		}
		over(t, &stub{panic: "a bug"}).start(r.method, r.path, o...).raw().wantInternal()
		away := &lock.Error{Code: lock.StoreUnavailable, Detail: "away", RetryAfter: time.Second}
		over(t, &stub{err: away}).do(r.method, r.path, o...).wantStatus(http.StatusServiceUnavailable)
	}
	lost := over(t, &stub{err: lock.LostBecause(lock.Released)})
	lost.post("/locksets", body(oneLock)).wantStatus(http.StatusGone)
}

// TestWaitingForASet: the answers of a set that is waited for by its id.
func TestWaitingForASet(t *testing.T) {
	t.Parallel()
	const path = "/locksets/" + someID + "?wait_seconds=1"
	e := &lock.Entry{ID: someID, Tenant: "acme", Set: true, Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}}}
	over(t, &stub{grant: &service.Grant{Entry: e, Token: someToken, Position: 1}}).get(path, lockToken(someToken)).wantStatus(http.StatusOK)
	timedOut := &stub{err: &lock.Error{Code: lock.TimedOut, Detail: "x", RetryAfter: time.Second}, grant: &service.Grant{Entry: e}}
	over(t, timedOut).get(path, lockToken(someToken)).wantStatus(http.StatusLocked)
	clash := &stub{err: &lock.Error{Code: lock.ModeMismatch, Detail: "x"}}
	over(t, clash).get(path, lockToken(someToken)).wantStatus(http.StatusConflict)
	over(t, clash).get(strings.Replace(path, "/locksets/", "/locks/a/entries/", 1), lockToken(someToken)).wantStatus(http.StatusConflict)
}

// TestAdminOnBadDays: operators' routes ask for a bearer token, and a bug in them
// shows nothing of the inside.
func TestAdminOnBadDays(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/admin/deadlocks", "/admin/lock-order"} {
		newTenant(t).with("nonsense").get(path).wantStatus(http.StatusUnauthorized)
		broken := over(t, &stub{panic: "a bug"}).as(func(c *auth.Claims) { c.Scopes = []auth.Scope{auth.Admin} })
		broken.start("GET", path).raw().wantInternal()
	}
}

// wantStatus checks the status of a problem, whose form every answer is checked
// for.
func (a *answer) wantStatus(status int) {
	a.t.Helper()
	if a.status != status {
		a.t.Errorf("%v, want status %d", a, status)
	}
}
