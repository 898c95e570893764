package faults_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

// How a retry after a lost answer is made, over the indexes of a client that was
// made by [stand.proxied].
const (
	throughProxy = 0
	sameReplica  = 1
	otherReplica = 2
)

// loser is a client whose answers can be lost.
type loser struct {
	*drive.Client
	s     *stand
	proxy *rig.Proxy
	lock  string
	round int
}

// losers runs work for every client with rounds of its own, on a lock of its own.
func (s *stand) losers(rounds int, work func(l *loser)) {
	s.each(func(c *drive.Client) {
		through, proxy := s.proxied(c)
		l := &loser{Client: through, s: s, proxy: proxy, lock: fmt.Sprint("lost:", c.Number)}
		for ; l.round < rounds && s.ctx.Err() == nil; l.round++ {
			work(l)
		}
	})
}

// retryAt alternates between the replica that answered into the void and the other.
func (l *loser) retryAt() int { return []int{sameReplica, otherReplica}[l.round%2] }

// lose makes a request through the proxy and fails unless the server answered
// with the wanted status and the client never saw it.
func (l *loser) lose(want int, send func() drive.Answer) drive.Answer {
	l.s.t.Helper()
	before := l.proxy.Stats().AnswersDropped
	l.proxy.DropAnswers(1)
	a := send()
	if got := l.proxy.Stats().AnswersDropped - before; got != 1 || a.Err == nil {
		l.s.t.Errorf(
			"%s round %d: %d answers were dropped and the client got %v, want 1 and nothing", l.lock,
			l.round, got, a,
		)
	}
	if status := fmt.Appendf(nil, "HTTP/1.1 %d ", want); !bytes.HasPrefix(l.proxy.Dropped(), status) {
		l.s.t.Errorf("%s round %d: the dropped answer is not a %d", l.lock, l.round, want)
	}
	return a
}

// want fails unless the answer is the expected one.
func (l *loser) want(what string, a drive.Answer, status int, reason string) bool {
	l.s.t.Helper()
	if a.Status == status && a.Problem.Reason == reason {
		return true
	}
	l.s.t.Errorf("%s round %d: %s: %v, want %d %q", l.lock, l.round, what, a, status, reason)
	return false
}

// acquire takes the lock without faults, or fails.
func (l *loser) acquire(c *drive.Client, wait time.Duration) *drive.Hold {
	l.s.t.Helper()
	h, outcome := c.Acquire(
		l.s.ctx, drive.Request{Lock: l.lock, TTL: 10 * time.Second, Wait: wait, Replica: sameReplica},
	)
	if h == nil {
		l.s.t.Errorf("%s round %d: acquire is %s, want a grant", l.lock, l.round, outcome)
	}
	return h
}

// TestF4LostReleaseAnswer loses the answer to a release, lets another client (or the same)
// acquire the lock, and only then repeats the release. The newer hold must survive (etcd #22082).
func TestF4LostReleaseAnswer(t *testing.T) {
	rounds := count(20, 63) // by 16 clients: 320 or 1008
	s := newStand(t, 10*time.Minute)
	s.losers(rounds, func(l *loser) {
		successor := s.clients[l.Number]
		if l.round%4 >= 2 {
			successor = l.With(l.URLs...)
			defer successor.Close()
		}
		l.loseRelease(successor)
	})
	s.enough(clients*rounds, "answers to a release lost after the commit")
	s.judge()
}

func (l *loser) loseRelease(successor *drive.Client) {
	l.s.t.Helper()
	old := l.acquire(l.Client, 0)
	if old == nil {
		return
	}
	var next *drive.Hold
	granted := make(chan struct{})
	acquire := func() { next = l.acquire(successor, 20*time.Second); close(granted) }
	if l.round%8 < 4 { // the successor waits already
		go acquire()
		if _, err := l.s.store.AwaitBehind(l.s.ctx, l.lock, old.ID); err != nil {
			l.s.t.Error(err)
		}
	}
	first := l.lose(
		http.StatusNoContent, func() drive.Answer { return l.Delete(l.s.ctx, throughProxy, old) },
	)
	if l.round%8 >= 4 { // it comes afterwards
		go acquire()
	}
	<-granted
	again := l.Delete(l.s.ctx, l.retryAt(), old)
	l.want("the repeated release", again, http.StatusGone, "released")
	first.Status = http.StatusNoContent // which the proxy saw
	l.Record(history.Release, old, first)
	if next == nil {
		return
	}
	for _, replica := range []int{sameReplica, otherReplica} {
		if outcome := successor.Renew(l.s.ctx, replica, next); outcome != history.OK {
			l.s.t.Errorf("%s round %d: the newer holder's renewal is %s", l.lock, l.round, outcome)
		}
	}
	if outcome := successor.Release(l.s.ctx, otherReplica, 1, next); outcome != history.OK {
		l.s.t.Errorf("%s round %d: the newer holder's release is %s", l.lock, l.round, outcome)
	}
}

// TestF5LostAcquireAnswer loses the answer to a POST with an Idempotency-Key and
// repeats it, at the same replica and at the other: one entry, one place, one
// token, one fence.
func TestF5LostAcquireAnswer(t *testing.T) {
	rounds := count(20, 63)
	s := newStand(t, 10*time.Minute)
	s.losers(rounds, func(l *loser) { l.loseGrant() })
	s.enough(clients*rounds, "answers to an acquire lost after the commit")
	s.oneEntryPerKey(rounds)
	s.judge()
}

func (l *loser) loseGrant() {
	l.s.t.Helper()
	r := drive.Request{
		Lock: l.lock, TTL: 10 * time.Second, Wait: time.Duration(l.round%3) * time.Second,
		Key: fmt.Sprintf("key-%d-%d", l.Number, l.round),
	}
	first := l.lose(
		http.StatusCreated, func() drive.Answer { return l.Post(l.s.ctx, throughProxy, r) },
	)
	var holds []*drive.Hold
	for _, replica := range []int{l.retryAt(), sameReplica, otherReplica} {
		a := l.Post(l.s.ctx, replica, r)
		if !l.want("the repeated acquire", a, http.StatusCreated, "") {
			return
		}
		h := drive.HoldOf(r, a)
		if a.Call = first.Call; len(holds) > 0 && !h.SameGrant(holds[0]) {
			l.s.t.Errorf(
				"%s round %d: repeating gave entry %s fence %d, then entry %s fence %d (or another token)",
				l.lock, l.round, holds[0].ID, holds[0].Fence, h.ID, h.Fence,
			)
		}
		l.Record(history.Acquire, h, a)
		holds = append(holds, h)
	}
	if !bytes.Contains(l.proxy.Dropped(), []byte(holds[0].ID)) ||
		!bytes.Contains(l.proxy.Dropped(), fmt.Append(nil, holds[0].Fence)) {
		l.s.t.Errorf(
			"%s round %d: the answer that was lost is not about entry %s and fence %d", l.lock, l.round,
			holds[0].ID, holds[0].Fence,
		)
	}
	if outcome := l.Release(l.s.ctx, l.retryAt(), 1, holds[0]); outcome != history.OK {
		l.s.t.Errorf("%s round %d: release is %s", l.lock, l.round, outcome)
	}
	l.want(
		"the same POST after the release", l.Post(l.s.ctx, l.retryAt(), r), http.StatusGone, "released",
	)
}

// oneEntryPerKey checks in the store that each key made exactly one entry.
func (s *stand) oneEntryPerKey(rounds int) {
	s.t.Helper()
	truth, err := s.store.Truth(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range clients {
		lock := fmt.Sprint("lost:", i)
		entries := truth.Entries(lock)
		ids := map[string]bool{}
		for _, e := range entries {
			ids[e.Entry] = true
		}
		if len(entries) != rounds || len(ids) != rounds {
			s.t.Errorf(
				"%s: %d entries with %d ids in the store, want %d", lock, len(entries), len(ids), rounds,
			)
		}
	}
}

// enough fails when a run had too few faults, or too little load, to count.
func (s *stand) enough(faults int, what string) {
	s.t.Helper()
	seconds := s.history.Now().Seconds()
	summary := history.Summarize(s.history.Ops())
	s.t.Logf("%d %s in %.1f s", faults, what, seconds)
	if summary.Grants < faults {
		s.t.Errorf("%d grants, want at least one for each of %d faults", summary.Grants, faults)
	}
}

// TestF5LostPlace cuts requests that wait, lets others join behind them, and
// comes back with the same key, here and at the other replica: the places are
// the old ones and the grants come in their order.
func TestF5LostPlace(t *testing.T) {
	rounds := count(2, 63)
	s := newStand(t, 15*time.Minute)
	s.losers(rounds, func(l *loser) { l.losePlace() })
	s.enough(clients*rounds, "waiting requests cut")
	s.judge()
}

func (l *loser) losePlace() {
	l.s.t.Helper()
	ctx := l.s.ctx
	holder := l.acquire(l.s.clients[l.Number], 0)
	if holder == nil {
		return
	}
	r := drive.Request{
		Lock: l.lock, TTL: 10 * time.Second, Wait: 30 * time.Second,
		Key: fmt.Sprintf("place-%d-%d", l.Number, l.round),
	}
	cut := make(chan drive.Answer, 1)
	go func() { cut <- l.Post(ctx, throughProxy, r) }()
	waiter, err := l.s.store.AwaitBehind(ctx, l.lock, holder.ID)
	l.s.must(err)
	before := []string{holder.ID, waiter}
	l.proxy.CutAll()
	first := <-cut
	if first.Err == nil {
		l.s.t.Errorf("%s round %d: the request that was cut got %v", l.lock, l.round, first)
		return
	}
	newcomer := make(chan *drive.Hold, 1)
	behind := l.With(l.URLs...)
	defer behind.Close()
	go func() { newcomer <- l.acquire(behind, 30*time.Second) }()
	after, err := l.s.store.AwaitQueue(ctx, l.lock, 3)
	l.s.must(err)
	if err == nil && !slices.Equal(before, after[:2]) {
		l.s.t.Errorf("%s round %d: the queue was %v and is %v", l.lock, l.round, before, after)
	}
	back := make(chan drive.Answer, 1)
	returned := l.With(l.URLs...)
	defer returned.Close()
	go func() { back <- returned.Post(ctx, l.retryAt(), r) }()
	l.Release(ctx, otherReplica, 1, holder)
	granted := <-back
	if !l.want("the resumed wait", granted, http.StatusCreated, "") {
		return
	}
	h := drive.HoldOf(r, granted)
	granted.Call = first.Call
	l.Record(history.Acquire, h, granted)
	if h.ID != before[1] {
		l.s.t.Errorf(
			"%s round %d: the resumed wait got entry %s, want %s", l.lock, l.round, h.ID, before[1],
		)
	}
	l.Release(ctx, sameReplica, 1, h)
	if last := <-newcomer; last != nil {
		if last.Fence <= h.Fence {
			l.s.t.Errorf(
				"%s round %d: the newcomer's fence is %d, before %d", l.lock, l.round, last.Fence, h.Fence,
			)
		}
		l.Release(ctx, sameReplica, 1, last)
	}
}
