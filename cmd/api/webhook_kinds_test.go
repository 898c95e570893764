package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/test/poll"
)

// told is what a delivery is to have in its data: by the path of a field, its value, or nil for
// any.
type told map[string]any

// TestEveryKindIsSent causes each kind of event by requests, and has it delivered, signed, with
// what is documented of it.
func TestEveryKindIsSent(t *testing.T) {
	t.Parallel()
	to := &inbox{}
	address := serveTest(t, to.ServeHTTP)
	key := file(t, secret)
	s := start(
		t, "--data-dir", t.TempDir(), "--jwt-secret-file", key, "--webhook-allow", "127.0.0.0/8",
		"--webhook-allow-http", "--webhook-ports", "*",
	)
	printed := command(
		t, nil, "token", "--jwt-secret-file", key, "--tenant", "acme", "--subject", "boss", "--scope",
		"locks:read locks:write webhooks:write admin",
	)
	k := &kinds{server: s, token: strings.TrimSpace(printed.out), want: map[lock.EventKind]told{}}
	made := k.do("POST", "/webhooks", `{"url":"http://`+address+`/all"}`)
	for _, cause := range []func(){k.expire, k.end, k.wait, k.revoke, k.deadlock, k.supersede} {
		cause()
	}
	for _, kind := range lock.EventKinds() {
		if k.want[kind] == nil {
			t.Errorf("nothing causes %s", kind)
		}
	}
	for kind, want := range k.want {
		var got received
		poll.Until(t, fmt.Sprint("it is told: ", kind, want), func() (ok bool) {
			got, ok = to.find(string(kind), want)
			if !ok && kind == lock.EventDeadlockRefused {
				k.deadlock() // it takes two that come at once
			}
			return ok
		})
		if !got.signedBy(t, made.text("secret")) || strings.Contains(string(got.body), "fp1_") {
			t.Errorf("%s is signed otherwise, or has a token: %s", kind, got.body)
		}
	}
	if code := s.end(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// find returns the delivery of a kind that has what is wanted.
func (i *inbox) find(kind string, want told) (received, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.IndexFunc(i.all, func(r received) bool {
		var e struct {
			Type string
			Data map[string]any
		}
		return json.Unmarshal(r.body, &e) == nil && e.Type == kind && want.in(e.Data)
	})
	if at < 0 {
		return received{}, false
	}
	return i.all[at], true
}

func (w told) in(data map[string]any) bool {
	for path, want := range w {
		var at any = data
		for field := range strings.SplitSeq(path, ".") {
			in, _ := at.(map[string]any)
			at = in[field]
		}
		if at == nil || want != nil && fmt.Sprint(at) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}

// kinds causes events, and keeps what the receiver should get of each.
type kinds struct {
	*server
	token  string
	want   map[lock.EventKind]told
	rounds int
}

// do makes a request that has to succeed.
func (k *kinds) do(method, path, body string, headers ...string) reply {
	k.t.Helper()
	r := k.call(k.token, method, path, body, headers...)
	if r.status >= http.StatusMultipleChoices {
		k.t.Fatalf("%s %s: %d %v", method, path, r.status, r.body)
	}
	return r
}

func (k *kinds) expire() {
	e := k.do("POST", "/locks/expires", `{"ttl_seconds":2,"metadata":{"job":"7"}}`)
	k.want[lock.EventExpired] = told{
		"lock": "expires", "entry.id": e.text("id"), "entry.metadata.job": "7", "held": true,
		"reason": "expired", "held_seconds": nil,
	}
}

func (k *kinds) end() {
	e := k.do("POST", "/locks/ends", `{"holder":"worker-7"}`)
	k.want[lock.EventAcquired] = told{
		"lock": "ends", "entry.fence": e.number("fence"), "entry.holder": "worker-7",
		"entry.mode": "exclusive", "waited_seconds": nil,
	}
	k.do("DELETE", "/locks/ends", "", "Lock-Token", e.text("token"))
	k.want[lock.EventReleased] = told{
		"lock": "ends", "entry.fence": e.number("fence"), "held": true, "reason": "released",
		"held_seconds": nil,
	}
}

// wait waits for the lock, asks the holder to finish, and cancels.
func (k *kinds) wait() {
	k.do("POST", "/locks/waits", `{"ttl_seconds":600}`)
	e := k.do(
		"POST", "/locks/waits", `{"async":true,"wait_seconds":1,"request_release":{"within_seconds":30}}`,
	)
	about := func(more told) told {
		more["lock"], more["entry.id"] = "waits", e.text("id")
		return more
	}
	k.want[lock.EventEnqueued] = about(told{"entry.ttl_seconds": nil})
	k.want[lock.EventReleaseRequested] = about(told{
		"release_requested.within_seconds": 30, "release_requested.since": nil,
		"release_requested.wished_at": nil,
	})
	k.want[lock.EventWaitTimeout] = about(told{"held": false, "reason": "wait_timeout"})
}

func (k *kinds) revoke() {
	e := k.do("POST", "/locks/revoked", `{"ttl_seconds":600}`)
	k.do(
		"POST", "/admin/locks/acme/revoked/entries/"+e.text("id")+"/revoke",
		fmt.Sprintf(`{"reason":"its node is lost","fence":%d}`, int64(e.number("fence"))),
	)
	k.want[lock.EventRevoked] = told{
		"lock": "revoked", "entry.id": e.text("id"), "held": true, "reason": "revoked",
		"revoked.by": "boss", "revoked.reason": "its node is lost",
	}
}

// supersede has two entries wait, and the later one stays.
func (k *kinds) supersede() {
	k.do("POST", "/locks/deploys", `{"ttl_seconds":600}`)
	waits := `{"ttl_seconds":600,"wait_seconds":600,"async":true,"only_newest":true}`
	e := k.do("POST", "/locks/deploys", waits)
	k.do("POST", "/locks/deploys", waits)
	k.want[lock.EventSuperseded] = told{
		"lock": "deploys", "entry.id": e.text("id"), "held": false, "reason": "superseded",
	}
}

// deadlock has two who each hold a lock wait for the other's, at once: if neither is refused before
// it is written, one is taken back. Otherwise it has to be tried again.
func (k *kinds) deadlock() {
	k.rounds++
	names := []string{fmt.Sprint("cross:", k.rounds, "a"), fmt.Sprint("cross:", k.rounds, "b")}
	for i, name := range names {
		k.do("POST", "/locks/"+name, fmt.Sprintf(`{"ttl_seconds":600,"holder":"x%d-%d"}`, k.rounds, i))
	}
	var both sync.WaitGroup
	for i := range names {
		both.Go(func() {
			_, _ = k.try(
				k.token, "POST", "/locks/"+names[1-i],
				fmt.Sprintf(`{"ttl_seconds":600,"wait_seconds":1,"async":true,"holder":"x%d-%d"}`, k.rounds, i),
			)
		})
	}
	both.Wait()
	k.want[lock.EventDeadlockRefused] = told{"reason": "deadlock", "held": false, "entry.holder": nil}
}
