//go:build pending

package handlers_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestWaitTimeoutCountsTheOthers: a request that gave up waiting is not among the
// waiters that it is told of.
func TestWaitTimeoutCountsTheOthers(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.acquire("orders:42")
	for range 20 {
		a := c.post("/locks/orders:42", body(`{"wait_seconds":0.05}`))
		if r := a.refused("wait_timeout"); *r.Waiters != 0 {
			t.Errorf("waiters = %d, want 0", *r.Waiters)
		}
	}
}

// TestConcurrentRetriesThatDoNotWait: requests with one key that are on their way
// together are one entry, and none of them is told that another one holds the lock.
func TestConcurrentRetriesThatDoNotWait(t *testing.T) {
	t.Parallel()
	for range 200 {
		c := newTenant(t)
		answers := make([]*pending, 4)
		for i := range answers {
			at := []*replica{shared.main, shared.brief}[i%2]
			answers[i] = c.at(at).start("POST", "/locks/orders:42", body(`{}`), key("k"))
		}
		c.release(sameEntry(t, answers))
	}
}

// TestWaitedSecondsOfAResume: a request that comes back after the grant is told
// how long the entry waited, as its owner is who looks at the entry.
func TestWaitedSecondsOfAResume(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	first := c.acquire("orders:42")
	const text = `{"wait_seconds":20}`
	e := c.at(shared.brief).post("/locks/orders:42", body(text), key("k")).waiting(http.StatusAccepted)
	c.release(first)
	seen := c.get(entryPath(e)+"?wait_seconds=5", lockToken(e.Token)).held(http.StatusOK)
	again := c.post("/locks/orders:42", body(text), key("k")).held(http.StatusCreated)
	if *again.WaitedSeconds < briefHold.Seconds() || *seen.WaitedSeconds < briefHold.Seconds() {
		t.Errorf("waited_seconds = %v of a POST and %v of a GET, want more than %v", *again.WaitedSeconds, *seen.WaitedSeconds, briefHold)
	}
}

// TestNullInMetadata: metadata are pairs of strings, and null is none.
func TestNullInMetadata(t *testing.T) {
	t.Parallel()
	want := invalid("metadata", "must be an object of strings")
	newTenant(t).post("/locks/orders:42", body(`{"metadata":{"a":null}}`)).wantProblem(want)
}

// TestEncodedSlashBesideABrace: an encoded slash is no slash, whatever else the
// path has. net/url gives up on RawPath when a character of it should have been
// escaped, and routes by the plain text.
func TestEncodedSlashBesideABrace(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, line := range []string{"POST /locks/a%2Fb{", "GET /locks/a%2Fentries/x{", "PUT /locks/a%2Fx|/renew"} {
		conn := dial(t, shared.main)
		conn.write(line + " HTTP/1.1\r\nHost: x\r\nLock-Token: x\r\nAuthorization: Bearer " + c.bearer + "\r\n\r\n")
		method, _, _ := strings.Cut(line, " ")
		if a, _ := conn.read(method); a.status == http.StatusForbidden || a.status < 400 {
			t.Errorf("%s: %v: the slash was taken for one", line, a)
		}
	}
}
