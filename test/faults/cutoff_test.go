package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

// servesAgain is how soon a replica serves that reaches the store again.
const servesAgain = 5 * time.Second

// ways are those in which replicas are cut off from the store, each replica in its own.
// One that is cut off one way hears of changes but cannot ask, or asks without an answer.
var ways = [...]struct {
	name string
	lost rig.Direction
}{
	{"all is lost", rig.Both},
	{"what it sends is lost", rig.ToServer},
	{"what it is sent is lost", rig.ToClient},
}

// whole is the index of the replica that is not cut off.
const whole = len(ways)

// cutOff is what happens while replicas cannot reach the store.
type cutOff struct {
	*stand
	round   int
	proxies [][]*rig.Proxy // of each replica that is cut off, one before each member
	cut     atomic.Int64   // when, on the clock of the history; 0 if it is not
	told    []longest      // time in which requests were answered that could not be served, by replica
	waiters []longest      // and after the cut, requests that were waiting
	serves  []longest      // time after the cut's end until the replica served

	slowest longest // of the acquires at the whole replica

	// requests answered 503; locks that the heirs got, and others at the whole replica
	refused, passed, granted atomic.Int64
}

// TestF11CutOff cuts three replicas off from all members, each in another way. Their clients get
// errors in time. Their locks pass to clients of the fourth replica, and never before the holders
// know by their own clocks that they lost them. Afterwards the replicas serve again.
func TestF11CutOff(t *testing.T) {
	rounds, length := count(1, 4), time.Duration(count(0, 30))*time.Second
	s := &cutOff{
		stand: newCluster(t, 20*time.Minute), told: make([]longest, len(ways)),
		waiters: make([]longest, len(ways)), serves: make([]longest, len(ways)),
	}
	for range ways {
		s.proxies = append(s.proxies, s.replicaBehindProxies(func(*rig.Proxy) {}))
	}
	s.replica(s.cluster.Store())
	s.observe()
	s.connect()
	for ; s.round < rounds; s.round++ {
		s.cutThrough(length)
	}
	for i, way := range ways {
		t.Logf(
			"%s: told after %v, waiting requests %v after the cut, served again after %v", way.name,
			&s.told[i], &s.waiters[i], &s.serves[i],
		)
	}
	t.Logf(
		"%d requests refused; at the whole replica %d locks passed on, and %d others were granted, within %v",
		s.refused.Load(),
		s.passed.Load(),
		s.granted.Load(),
		&s.slowest,
	)
	if n := s.refused.Load(); n < int64(3*clients*rounds) {
		t.Errorf("%d requests refused: too few for the run to count", n)
	}
	s.judge()
}

// victim is what one client has at a replica that is cut off.
type victim struct {
	*drive.Client
	whole   *drive.Client // the same one, but knows only the replica that is not cut off
	replica int
	// renewed; released during the cut; held at the whole replica, with a waiter
	held, freed, wait *drive.Hold
	heir              chan *drive.Hold
	waiter            chan drive.Answer
}

// cutThrough is one cut, from before it until all is served again.
func (s *cutOff) cutThrough(length time.Duration) {
	s.t.Helper()
	victims := make([]*victim, clients)
	var busy sync.WaitGroup
	s.each(func(c *drive.Client) { victims[c.Number] = s.prepare(c, &busy) })
	if slices.ContainsFunc(victims, func(v *victim) bool { return v.held == nil }) {
		s.t.FailNow()
	}
	before := s.hole(true)
	end := s.history.Now() + length
	for _, v := range victims {
		busy.Go(func() { s.outside(v, end) })
	}
	busy.Wait()
	for _, v := range victims {
		s.inherited(v)
	}
	s.leaked(before)
	s.hole(false)
	healed := s.history.Now()
	s.each(func(c *drive.Client) { s.servesAgain(victims[c.Number], healed) })
}

// ttl is that of everything at the replicas.
func (s *cutOff) ttl() time.Duration { return time.Duration(count(3, 10)) * time.Second }

func (s *cutOff) lock(what string, c *drive.Client) string {
	return fmt.Sprintf("%s:%d:%d", what, c.Number, s.round)
}

// prepare makes a client hold locks, renew one and wait for one at its replica. Another client
// waits at the healthy replica for the renewed lock.
func (s *cutOff) prepare(c *drive.Client, busy *sync.WaitGroup) *victim {
	s.t.Helper()
	v := &victim{
		Client: c, whole: c.With(c.URLs[whole]), replica: c.Number % len(ways),
		heir: make(chan *drive.Hold, 1), waiter: make(chan drive.Answer, 1),
	}
	s.t.Cleanup(v.whole.Close)
	v.wait, _ = c.Acquire(
		s.ctx, drive.Request{Lock: s.lock("waited", c), TTL: 2 * time.Minute, Replica: whole},
	)
	v.freed, _ = c.Acquire(
		s.ctx, drive.Request{Lock: s.lock("freed", c), TTL: s.ttl(), Replica: v.replica},
	)
	if v.wait == nil || v.freed == nil {
		s.t.Errorf("client %d was granted nothing", c.Number)
		return v
	}
	go func() {
		v.waiter <- c.Post(
			s.ctx, v.replica, drive.Request{Lock: v.wait.Lock, TTL: longTTL, Wait: time.Minute},
		)
	}()
	_, err := s.store.AwaitBehind(s.ctx, v.wait.Lock, v.wait.ID)
	s.must(err)
	if v.held, _ = c.Acquire(
		s.ctx, drive.Request{Lock: s.lock("held", c), TTL: s.ttl(), Replica: v.replica},
	); v.held == nil {
		s.t.Errorf("client %d was granted nothing", c.Number)
		return v
	}
	busy.Go(func() { s.renewByTheRules(v) })
	go func() {
		h, _ := c.Acquire(
			s.ctx, drive.Request{Lock: v.held.Lock, TTL: s.ttl(), Wait: 2 * time.Minute, Replica: whole},
		)
		v.heir <- h
	}()
	_, err = s.store.AwaitBehind(s.ctx, v.held.Lock, v.held.ID)
	s.must(err)
	return v
}

// hole cuts the replicas off, or ends it, and returns what had passed until then.
func (s *cutOff) hole(on bool) (passed []rig.ProxyStats) {
	for i, way := range ways {
		lost := way.lost
		if !on {
			lost = 0
		}
		for _, p := range s.proxies[i] {
			p.Blackhole(lost)
		}
		passed = append(passed, s.passedBy(i))
	}
	var at int64
	if on {
		at = int64(s.history.Now())
	}
	s.cut.Store(at)
	return passed
}

func (s *cutOff) passedBy(replica int) (sum rig.ProxyStats) {
	for _, p := range s.proxies[replica] {
		stats := p.Stats()
		sum.BytesToServer += stats.BytesToServer
		sum.BytesToClient += stats.BytesToClient
	}
	return sum
}

// leaked checks that each replica was cut off in its way, and in no other.
func (s *cutOff) leaked(before []rig.ProxyStats) {
	s.t.Helper()
	for i, way := range ways {
		now := s.passedBy(i)
		sent := now.BytesToServer - before[i].BytesToServer
		received := now.BytesToClient - before[i].BytesToClient
		s.t.Logf("%s: %d bytes reached the store, %d the replica", way.name, sent, received)
		if (sent > 0) != (way.lost&rig.ToServer == 0) || (received > 0) != (way.lost&rig.ToClient == 0) {
			s.t.Errorf("%s: the run does not count", way.name)
		}
	}
}

// renewByTheRules renews at a third of the TTL until the holder must take its lock for lost.
func (s *cutOff) renewByTheRules(v *victim) {
	s.t.Helper()
	deadline := v.held.Until
	next := v.held.TTL / 3
	for {
		if pause(s.ctx, next); v.Now() >= deadline || s.ctx.Err() != nil {
			return
		}
		a := v.Put(s.ctx, v.replica, v.held)
		v.Record(history.Renew, v.held, a)
		if cut := time.Duration(s.cut.Load()); cut > 0 && a.Call > cut {
			s.cannotServe(v, "renewal", a)
		}
		if next = 100 * time.Millisecond; a.Status == http.StatusOK {
			deadline, next = a.Call+v.held.TTL, v.held.TTL/3
		}
	}
}

// outside asks for everything at the replica that is cut off, and for something at the
// other one, at least once and until the end.
func (s *cutOff) outside(v *victim, end time.Duration) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.waiterTold(v) })
	for n := 0; n == 0 || v.Now() < end && s.ctx.Err() == nil; n++ {
		var asked sync.WaitGroup
		for what, wait := range map[string]time.Duration{"new": 0, "queue": time.Minute} {
			asked.Go(func() {
				r := drive.Request{
					Lock: fmt.Sprintf("%s:%d", s.lock(what, v.Client), n), TTL: s.ttl(), Wait: wait,
				}
				a := v.Post(s.ctx, v.replica, r)
				v.Record(history.Acquire, drive.HoldOf(r, a), a)
				s.cannotServe(v, "acquire", a)
			})
		}
		asked.Go(func() {
			a := v.Delete(s.ctx, v.replica, v.freed)
			v.Record(history.Release, v.freed, a)
			s.cannotServe(v, "release", a)
		})
		asked.Go(func() { s.elsewhere(v, fmt.Sprintf("%s:%d", s.lock("elsewhere", v.Client), n)) })
		asked.Wait()
	}
}

// cannotServe checks the answer to a request that was sent during the cut: 503 in time. That
// an entry is gone may be known without asking.
func (s *cutOff) cannotServe(v *victim, what string, a drive.Answer) {
	s.t.Helper()
	took := a.Return - a.Call
	s.told[v.replica].add(took)
	switch {
	case a.Status == http.StatusGone && a.Problem.Reason == "expired":
	case a.Status != http.StatusServiceUnavailable || a.Problem.Code != "store_unavailable" ||
		a.Header.Get("Retry-After") == "":
		s.t.Errorf(
			"%s at the replica where %s: %v, want 503 store_unavailable with Retry-After", what,
			ways[v.replica].name, a,
		)
	default:
		s.refused.Add(1)
	}
	if took > within(toldOfOutage) {
		s.t.Errorf(
			"%s at the replica where %s was told after %v, want at most %v", what, ways[v.replica].name,
			took, within(toldOfOutage),
		)
	}
}

// waiterTold checks that a waiting request gets an error when the replica is cut off, and that
// its position is kept meanwhile.
func (s *cutOff) waiterTold(v *victim) {
	s.t.Helper()
	a := <-v.waiter
	a.Call = time.Duration(s.cut.Load())
	s.waiters[v.replica].add(a.Return - a.Call)
	s.cannotServe(v, "waiting request", a)
	if a.Problem.Entry == nil || a.Problem.Entry.Token == "" {
		s.t.Errorf(
			"waiting request at the replica where %s: %v, want the entry that stands", ways[v.replica].name,
			a,
		)
		return
	}
	a.Entry = *a.Problem.Entry
	h := drive.HoldOf(drive.Request{Lock: v.wait.Lock, TTL: longTTL}, a)
	h.Waiting = true
	if outcome := v.Release(s.ctx, whole, 1, h); outcome != history.OK {
		s.t.Errorf(
			"waiting request at the replica where %s: its entry cannot be released elsewhere: %s",
			ways[v.replica].name, outcome,
		)
	}
}

// elsewhere is granted a lock by the replica that is not cut off.
func (s *cutOff) elsewhere(v *victim, lock string) {
	s.t.Helper()
	began := v.Now()
	h, outcome := v.whole.Acquire(
		s.ctx, drive.Request{Lock: lock, TTL: s.ttl(), Key: lock, Attempts: 5},
	)
	if h == nil {
		s.t.Errorf("%s: acquire at the whole replica is %s", lock, outcome)
		return
	}
	s.granted.Add(1)
	s.slowest.add(v.Now() - began)
	v.whole.Release(s.ctx, 0, 5, h)
}

// inherited waits until the lock that was held at the replica was granted at the whole one.
func (s *cutOff) inherited(v *victim) {
	s.t.Helper()
	h := <-v.heir
	if h == nil {
		s.t.Errorf("%s was not passed on", v.held.Lock)
		return
	}
	s.passed.Add(1)
	v.Release(s.ctx, whole, 1, h)
}

// servesAgain makes the replica grant a lock, and another client of it wait for the lock until it
// is released elsewhere.
func (s *cutOff) servesAgain(v *victim, healed time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, within(2*servesAgain))
	defer cancel()
	r := drive.Request{Lock: s.lock("again", v.Client), TTL: s.ttl(), Replica: v.replica}
	first, outcome := v.Acquire(ctx, r)
	for n := 0; first == nil && ctx.Err() == nil; n++ {
		pause(ctx, 20*time.Millisecond)
		r.Lock = fmt.Sprintf("%s:%d", s.lock("again", v.Client), n)
		first, outcome = v.Acquire(ctx, r)
	}
	if first == nil {
		s.t.Errorf("%s: acquire is %s after the cut", r.Lock, outcome)
		return
	}
	next := make(chan *drive.Hold, 1)
	go func() {
		r.Wait = 30 * time.Second
		h, _ := v.Acquire(s.ctx, r)
		next <- h
	}()
	_, err := s.store.AwaitBehind(s.ctx, r.Lock, first.ID)
	s.must(err)
	v.Release(s.ctx, whole, 1, first)
	h := <-next
	took := v.Now() - healed
	s.serves[v.replica].add(took)
	if h == nil || took > within(servesAgain) {
		s.t.Errorf(
			"%s was passed on (%t) %v after the cut, want within %v", r.Lock, h != nil, took,
			within(servesAgain),
		)
	}
	if h != nil {
		v.Release(s.ctx, v.replica, 3, h)
	}
	v.Release(s.ctx, whole, 3, v.wait)
}
