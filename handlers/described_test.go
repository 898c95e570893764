package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

const oneLock = `{"locks":[{"name":"a"}]}`

// TestWaitOfAnEntryIsAnsweredAsItsEnd: for a lock and for a set.
func TestWaitOfAnEntryIsAnsweredAsItsEnd(t *testing.T) {
	t.Parallel()
	const path = "/locksets/" + someID + "?wait_seconds=1"
	e := &lock.Entry{
		ID: someID, Tenant: "acme", Set: true, Claims: []lock.Claim{{Name: "a", Mode: lock.Exclusive}},
	}
	over(
		t, &stub{grant: &service.Grant{Entry: e, Token: someToken, Position: 1}},
	).get(path, lockToken(someToken)).wantStatus(http.StatusOK)
	timedOut := &stub{
		err:   &lock.Error{Code: lock.TimedOut, Detail: "x", RetryAfter: time.Second},
		grant: &service.Grant{Entry: e},
	}
	over(t, timedOut).get(path, lockToken(someToken)).wantStatus(http.StatusLocked)
	ofLock := strings.Replace(path, "/locksets/", "/locks/a/entries/", 1)
	alone := *e
	alone.Set = false
	timedOut = &stub{err: timedOut.err, grant: &service.Grant{Entry: &alone}}
	over(t, timedOut).get(ofLock, lockToken(someToken)).wantStatus(http.StatusLocked)
	clash := &stub{err: &lock.Error{Code: lock.ModeMismatch, Detail: "x"}}
	over(t, clash).get(path, lockToken(someToken)).wantStatus(http.StatusConflict)
	over(t, clash).get(ofLock, lockToken(someToken)).wantStatus(http.StatusConflict)
}

// wantStatus checks the status of a problem, whose form every answer is checked
// for.
func (a *answer) wantStatus(status int) {
	a.t.Helper()
	if a.status != status {
		a.t.Errorf("%v, want status %d", a, status)
	}
}
