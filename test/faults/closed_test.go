package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/test/rig"
)

// closing is what happens to locks that an operator closes at one replica, while another one is
// cut off from the store or stands still.
type closing struct {
	*stand
	proxies []*rig.Proxy // of the latter
	bearer  string       // the operator's
}

// closure is what the operator reads of an answer.
type closure struct {
	ID       string
	Revision int64
}

// TestClosureAgainstACut closes locks at one replica. Another one is cut off, or stands still, and
// has many requests for them, before, meanwhile and afterwards. After the closure is answered no
// entry joins, by the store's own history; once the locks are opened, entries join again.
func TestClosureAgainstACut(t *testing.T) {
	s := &closing{stand: newCluster(t, 10*time.Minute)}
	s.replica(s.cluster.Store())
	s.proxies = s.replicaBehindProxies(func(*rig.Proxy) {})
	s.observe()
	s.connect()
	var err error
	s.bearer, err = rig.SignToken(secret, "operator", "admin", "operator")
	s.must(err)
	for round := range count(1, 5) {
		for how, cut := range map[string]func(on bool){
			"cut":   func(on bool) { s.blackhole(on, rig.Both) },
			"deaf":  func(on bool) { s.blackhole(on, rig.ToClient) },
			"still": s.still,
		} {
			s.closed(fmt.Sprintf("%s:%d:", how, round), cut)
		}
	}
	s.readLogs()
}

func (s *closing) blackhole(on bool, lost rig.Direction) {
	if !on {
		lost = 0
	}
	for _, p := range s.proxies {
		p.Blackhole(lost)
	}
}

func (s *closing) still(on bool) {
	if on {
		s.must(s.replicas[1].Stop())
		return
	}
	s.must(s.replicas[1].Continue())
}

// closed is one closure of the locks with a prefix.
func (s *closing) closed(prefix string, cut func(on bool)) {
	s.t.Helper()
	var load sync.WaitGroup
	var granted, refused atomic.Int64
	over := make(chan struct{})
	load.Go(func() { s.each(func(c *drive.Client) { s.work(c, prefix, over, &granted, &refused) }) })
	poll.Within(s.t, seenWithin, prefix+" is granted", func() bool { return granted.Load() > 50 })
	cut(true)
	made := s.close(prefix + "*")
	pause(s.ctx, time.Second)
	before := refused.Load()
	cut(false)
	poll.Within(s.t, seenWithin, prefix+" is refused", func() bool {
		return refused.Load() > before+50
	})
	close(over)
	load.Wait()
	joined, err := s.store.Joined(s.ctx, prefix)
	s.must(err)
	for _, at := range joined {
		if at > made.Revision {
			s.t.Errorf("an entry of %s joined at %d, after the closure at %d", prefix, at, made.Revision)
		}
	}
	s.t.Logf(
		"%s: %d granted, %d refused, %d joined", prefix, granted.Load(), refused.Load(), len(joined),
	)
	a := s.ask(http.MethodDelete, "/admin/closures/"+made.ID, nil)
	if a.Status != http.StatusNoContent {
		s.t.Errorf("opened with %v", a)
	}
	poll.Within(s.t, seenWithin, prefix+" is open", func() bool {
		return s.try(s.clients[0], prefix+"again", "").Status == http.StatusCreated
	})
}

// work tries locks at the replica that is cut off, and releases them.
func (s *closing) work(
	c *drive.Client, prefix string, over <-chan struct{}, granted, refused *atomic.Int64,
) {
	for n := 0; s.ctx.Err() == nil; n++ {
		select {
		case <-over:
			return
		default:
		}
		key := ""
		if c.Number%2 == 0 {
			key = fmt.Sprint(prefix, c.Number, "-", n)
		}
		a := s.try(c, fmt.Sprint(prefix, c.Number), key)
		switch a.Status {
		case http.StatusCreated:
			granted.Add(1)
			c.Delete(s.ctx, 1, drive.HoldOf(drive.Request{Lock: fmt.Sprint(prefix, c.Number)}, a))
		case http.StatusLocked:
			refused.Add(1)
		default:
			pause(s.ctx, 10*time.Millisecond)
		}
	}
}

func (s *closing) try(c *drive.Client, name, key string) drive.Answer {
	return c.Post(s.ctx, 1, drive.Request{Lock: name, TTL: 2 * time.Second, Key: key, Replica: 1})
}

func (s *closing) close(locks string) (made closure) {
	s.t.Helper()
	a := s.ask(http.MethodPost, "/admin/closures", map[string]any{
		"tenant": tenant, "locks": locks, "reason": "the stock is counted",
		"until": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	if err := json.Unmarshal(a.Body, &made); err != nil || a.Status != http.StatusCreated {
		s.t.Fatalf("closed with %v (%v)", a, err)
	}
	return made
}

func (s *closing) ask(method, path string, body any) drive.Answer {
	header := map[string]string{"Authorization": "Bearer " + s.bearer}
	return s.clients[0].Ask(s.ctx, 0, method, path, header, body, 0)
}
