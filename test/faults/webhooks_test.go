package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

// receivers take webhooks, each at a path of its own, and fail now and then.
type receivers struct {
	*httptest.Server
	mu   sync.Mutex
	told map[string]*told
}

// told is what one of them was told of.
type told struct {
	acquired, ended map[int64]bool // by the fence of the entry
	ids             map[string]int
	failed          map[string]bool
	missed          []gap
}

// gap is what is missed: all of numbers from the one to the other.
type gap struct{ from, to uint64 }

func receive(t *testing.T, names ...string) *receivers {
	t.Helper()
	r := &receivers{told: map[string]*told{}}
	for _, name := range names {
		r.told[name] = &told{acquired: map[int64]bool{}, ended: map[int64]bool{}, ids: map[string]int{}, failed: map[string]bool{}}
	}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Server.Close)
	return r
}

// event is what the tests read of one.
type event struct {
	Type string
	Data struct {
		Number        uint64
		After, Before string
		Entry         struct{ Fence int64 }
	}
}

func (r *receivers) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var e event
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one, id := r.told[strings.TrimPrefix(req.URL.Path, "/")], req.Header.Get("webhook-id")
	if err != nil || !one.failed[id] && rand.N(20) == 0 { // not twice: the third attempt is minutes later
		one.failed[id] = true
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	one.ids[id]++
	switch e.Type {
	case "events.missed":
		one.missed = append(one.missed, gap{numberOf(e.Data.After), numberOf(e.Data.Before)})
	case "lock.acquired":
		one.acquired[e.Data.Entry.Fence] = true
	default:
		one.ended[e.Data.Entry.Fence] = true
	}
}

// numberOf is the number of an event's id; 0 if it is none.
func numberOf(id string) uint64 {
	text, _, _ := strings.Cut(id, "-")
	number, _ := strconv.ParseUint(text, 10, 64)
	return number
}

// lacks counts the grants and releases of which a receiver knows neither that they happened nor
// that it misses them.
func (r *receivers) lacks(name string, granted, released []int64) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.told[name]
	missed := func(fence int64, later bool) bool {
		for _, g := range one.missed {
			if uint64(fence) >= g.from && uint64(fence) <= g.to || later && uint64(fence) <= g.to {
				return true
			}
		}
		return false
	}
	for _, fence := range granted {
		if !one.acquired[fence] && !missed(fence, false) {
			n++
		}
	}
	for _, fence := range released { // at a number that is not known
		if !one.ended[fence] && !missed(fence, true) {
			n++
		}
	}
	return n
}

// TestWebhooksOutliveTheirSenders kills the replicas that send webhooks, one after the other and
// both at once, under load, beside receivers that fail: every grant and every release that a client knows
// of is told to every subscription, or that it is missed.
func TestWebhooksOutliveTheirSenders(t *testing.T) {
	s := newStand(t, 90*time.Minute, "--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*")
	names := []string{"a", "b", "c", "d", "e", "f"}
	r := receive(t, names...)
	for _, name := range names {
		s.subscribe(r.URL + "/" + name)
	}
	load, stop := context.WithCancel(s.ctx)
	var mu sync.Mutex
	var granted, released []int64
	var loading sync.WaitGroup
	for _, c := range s.clients[:4] {
		loading.Go(func() {
			for n := 0; load.Err() == nil; n++ {
				pause(load, time.Duration(rand.N(40))*time.Millisecond)
				h, _ := c.Acquire(s.ctx, drive.Request{Lock: fmt.Sprintf("told:%d:%d", c.Number, n%5), TTL: 10 * time.Second, Replica: n % 2})
				if h == nil {
					continue
				}
				outcome := c.Release(s.ctx, n%2, 2, h)
				mu.Lock()
				granted = append(granted, h.Fence)
				if outcome == history.OK {
					released = append(released, h.Fence)
				}
				mu.Unlock()
			}
		})
	}
	pause(s.ctx, within(10*time.Second))
	for round := range count(4, 100) {
		victims := s.replicas[round%2 : round%2+1]
		if round%5 == 3 {
			victims = s.replicas
		}
		for _, v := range victims {
			s.must(v.Kill())
		}
		pause(s.ctx, time.Duration(rand.N(2000))*time.Millisecond)
		for _, v := range victims {
			s.must(v.Restart(s.ctx))
		}
		pause(s.ctx, time.Duration(1000+rand.N(3000))*time.Millisecond)
	}
	stop()
	loading.Wait()
	mu.Lock()
	defer mu.Unlock()
	lack := func() (n int) {
		for _, name := range names {
			n += r.lacks(name, granted, released)
		}
		return n
	}
	// Thousands may be owed at the end, and what failed twice comes minutes later.
	for end := time.Now().Add(10 * time.Minute); lack() > 0 && time.Now().Before(end); pause(s.ctx, 250*time.Millisecond) {
	}
	s.report(r, names, len(granted), len(released), lack())
	s.judge()
}

func (s *stand) report(r *receivers, names []string, granted, released, lack int) {
	s.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	missed, twice := 0, 0
	for _, name := range names {
		missed += len(r.told[name].missed)
		for _, times := range r.told[name].ids {
			if times > 1 {
				twice++
			}
		}
	}
	s.t.Logf("%d grants and %d releases for each of %d receivers; told more than once: %d; told that something is missed: %d times", granted, released, len(names), twice, missed)
	if lack > 0 {
		s.t.Errorf("%d were never told", lack)
	}
	if granted < 50 {
		s.t.Errorf("only %d grants", granted)
	}
}

// subscribe makes a subscription to all events of the tenant, and returns its id.
func (s *stand) subscribe(url string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"url": url})
	s.must(err)
	var made struct{ ID string }
	if status := s.webhook(http.MethodPost, "/webhooks", body, &made); status != http.StatusCreated {
		s.t.Fatalf("POST /webhooks: %d", status)
	}
	return made.ID
}

// webhook makes a request about webhooks, and reads the answer.
func (s *stand) webhook(method, path string, body []byte, into any) (status int) {
	s.t.Helper()
	bearer, err := rig.SignToken(secret, tenant, "webhooks:write", "subscriber")
	s.must(err)
	req, err := http.NewRequestWithContext(s.ctx, method, s.replicas[0].URL()+path, bytes.NewReader(body))
	s.must(err)
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	s.must(json.NewDecoder(resp.Body).Decode(into))
	return resp.StatusCode
}
