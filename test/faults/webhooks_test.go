package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/rig"
)

// TestWebhooksOutliveTheirSenders kills the replicas that send webhooks, one after the other and
// all at once, under load and with failing receivers. Every subscription receives every grant and
// every end in the store, or a report that this very event is missed, and nothing else. First
// attempts about a lock are in the order of its events unless a replica was killed.
func TestWebhooksOutliveTheirSenders(t *testing.T) {
	s := newStand(t, 2*time.Hour, toLoopback...)
	names := []string{"a", "b", "c", "d", "e", "f"}
	r := receive(t, names...)
	for _, name := range names {
		s.subscribe(r.URL + "/" + name)
	}
	var newest atomic.Uint64
	locks, stop := s.takeInTurn(&newest)
	r.rest(0)
	pause(s.ctx, 10*time.Second)
	k := newKiller(s, r, &newest)
	single := count(2, 100)
	for k.single < single || k.all < count(1, 20) {
		k.round(k.single >= 5*k.all+min(4, single))
	}
	stop()
	stopped := time.Now()
	s.must(s.store.AwaitEmpty(s.ctx))
	truth, err := s.store.Truth(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	dues := duesOf(truth, locks)
	// Thousands may be pending at the end, and the third attempt comes minutes later.
	end := time.Now().Add(10 * time.Minute)
	for r.all(names, dues).lacking > 0 && time.Now().Before(end) {
		pause(s.ctx, time.Second)
	}
	t.Logf(
		"kills of a replica that sent: %d, of all of them: %d; all was told %v after the last grant",
		k.single, k.all, time.Since(stopped).Round(time.Second),
	)
	s.report(r, names, dues)
	s.tell("what did not happen", r.untrue(truth, locks))
	s.judge()
}

// takeInTurn has clients take locks and release them, until stop, and keeps the newest fence. What
// happens while a shard has no owner has to find room when it is taken over: in a full run, with
// the server under the race detector and a kill every ten seconds, four clients without a pause
// make more than that, and most is missed.
func (s *stand) takeInTurn(newest *atomic.Uint64) (locks []string, stop func()) {
	longest := count(40, 1200) // pauses, in milliseconds
	acting, cut := context.WithCancel(s.ctx)
	load, end := context.WithCancel(acting)
	var loading sync.WaitGroup
	for _, c := range s.clients[:4] {
		for n := range 5 {
			locks = append(locks, fmt.Sprintf("told:%d:%d", c.Number, n))
		}
		loading.Go(func() {
			for n := 0; load.Err() == nil; n++ {
				pause(load, time.Duration(rand.N(longest))*time.Millisecond)
				h, _ := c.Acquire(acting, drive.Request{
					Lock: fmt.Sprintf("told:%d:%d", c.Number, n%5), TTL: 10 * time.Second, Replica: n % 2,
				})
				if h == nil {
					continue
				}
				for known := newest.Load(); uint64(h.Fence) > known &&
					!newest.CompareAndSwap(known, uint64(h.Fence)); known = newest.Load() {
				}
				c.Release(acting, n%2, 2, h)
			}
		})
	}
	s.t.Cleanup(func() { // of a test that ends where it is
		cut()
		loading.Wait()
	})
	return locks, func() {
		end()
		loading.Wait()
	}
}

// all sums the results of all receivers' dues.
func (r *receivers) all(names []string, dues []due) (sum outcomes) {
	for _, name := range names {
		n := r.count(name, dues)
		sum = outcomes{sum.told + n.told, sum.missed + n.missed, sum.lacking + n.lacking}
	}
	return sum
}

func (s *stand) report(r *receivers, names []string, dues []due) {
	s.t.Helper()
	sum := r.all(names, dues)
	wrong, judged := r.disorder()
	s.tell("first attempts that were not in order", wrong)
	r.mu.Lock()
	defer r.mu.Unlock()
	because, twice := map[string]int{}, 0
	for _, name := range names {
		for _, g := range r.told[name].missed {
			because[g.because]++
		}
		for _, times := range r.told[name].ids {
			if times > 1 {
				twice++
			}
		}
	}
	s.t.Logf(
		"%d grants and as many ends for each of %d receivers: %d told, %d of them more than once; %d missed, as was said for these reasons: %v; %d first attempts in order",
		len(dues),
		len(names),
		sum.told,
		twice,
		sum.missed,
		because,
		judged,
	)
	if sum.lacking > 0 {
		s.t.Errorf("%d were never told, nor that they are missed", sum.lacking)
	}
	if sum.told < sum.missed || judged == 0 || len(dues) < 50 {
		s.t.Errorf("that shows little: %+v, %d in order, %d grants", sum, judged, len(dues))
	}
	for _, odd := range r.odd {
		s.t.Error(odd)
	}
}

// tell fails for what is wrong, and shows the first of it.
func (s *stand) tell(what string, wrong []error) {
	s.t.Helper()
	if len(wrong) > 0 {
		s.t.Errorf("%s: %d, as\n%v", what, len(wrong), errors.Join(wrong[:min(5, len(wrong))]...))
	}
}

// subscribe makes a subscription to all events of the tenant, and returns its id.
func (s *stand) subscribe(url string) string {
	s.t.Helper()
	var made struct{ ID string }
	body := map[string]string{"url": url}
	if status := s.webhook(http.MethodPost, "/webhooks", body, &made); status != http.StatusCreated {
		s.t.Fatalf("POST /webhooks: %d", status)
	}
	return made.ID
}

// webhook makes a request about webhooks, and reads the answer.
func (s *stand) webhook(method, path string, body, into any) (status int) {
	s.t.Helper()
	bearer, err := rig.SignToken(secret, tenant, "webhooks:write", "subscriber")
	s.must(err)
	header := map[string]string{"Authorization": "Bearer " + bearer}
	a := s.clients[0].Ask(s.ctx, 0, method, path, header, body, 0)
	s.must(json.Unmarshal(a.Body, into))
	return a.Status
}
