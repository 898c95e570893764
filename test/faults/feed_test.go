package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/fencepost/fencepost/test/faults/drive"
	"github.com/fencepost/fencepost/test/faults/history"
	"github.com/fencepost/fencepost/test/rig"
)

const (
	// grantSeen bounds how late a replica with a silent feed sees a grant. It compares a feed with
	// the store every second, and drops it at the check that finds it two seconds behind. Then
	// waiters ask the store, within 0.6 s and for 0.7 s.
	grantSeen = 5 * time.Second

	lightFor = 2 * time.Second
	// compactEvery is how often etcd is compacted to where it is.
	compactEvery = 100 * time.Millisecond

	// direct and dark are the replicas: that which reaches the store, and that whose feed goes silent.
	direct, dark = 0, 1
)

// darkFor is so long that what is seen only as the feed goes on is seen too late, also by who
// waits since the replica gave up its feed and listed what there is.
const darkFor = 13 * time.Second

// seenInTime is grantSeen, and somewhat more in short runs.
func seenInTime() time.Duration { return grantSeen + time.Duration(count(2, 0))*time.Second }

// silence is what happens to the replica whose feed goes silent.
type silence struct {
	*stand
	proxies []*rig.Proxy // before each member
	isDark  atomic.Bool

	times, compactions int64
	seen, blind        atomic.Int64 // grants that waiters saw; those in the dark
	before             atomic.Int64 // and those, of entries that the replica had known by its feed
	slowest            longest
}

// TestF10SilentFeed has clients wait at a replica that hears nothing of the store's changes for a
// while, over a connection that stays open, and release at another one, while etcd is compacted all
// the time. Every waiter is granted its lock, and in time.
func TestF10SilentFeed(t *testing.T) {
	length := time.Duration(count(12, 60)) * time.Second
	s := &silence{stand: newCluster(t, length+seenWithin+3*time.Minute)}
	s.replica(s.cluster.Store())
	s.proxies = s.replicaBehindProxies(func(p *rig.Proxy) { p.BlackholeSome(0, follows) })
	s.observe()
	s.connect()
	least := int64(count(clients, 100))
	ctx, stop := s.until(
		length, func() bool { return s.blind.Load() >= least && s.before.Load() >= least/4 },
	)
	defer stop()
	var faults sync.WaitGroup
	faults.Go(func() { s.darken(ctx) })
	faults.Go(func() { s.compact(ctx) })
	s.each(func(c *drive.Client) {
		waiter := c.With(c.URLs...)
		defer waiter.Close()
		for n := 0; ctx.Err() == nil; n++ {
			s.passOn(ctx, c, waiter)
			pause(ctx, rand.N(100*time.Millisecond))
		}
	})
	faults.Wait()
	t.Logf(
		"%d grants seen, %d of them in the dark, and of these %d of entries from before, within %v; %d times dark, %d compactions, the feed was given up %d times",
		s.seen.Load(),
		s.blind.Load(),
		s.before.Load(),
		&s.slowest,
		s.times,
		s.compactions,
		s.interruptions(),
	)
	if s.blind.Load() < least || s.before.Load() < least/4 || s.interruptions() == 0 ||
		!onZooKeeper() && s.compactions < int64(length/time.Second) {
		t.Errorf(
			"too few for the run to count: %d grants are wanted in the dark, a quarter of them of entries from before, a feed that was given up, and on etcd a compaction a second",
			least,
		)
	}
	s.judge()
}

// follows tells the first request of a feed from others: the path of etcd's Watch, as gRPC
// compresses it, or a read of the log with a watch on ZooKeeper.
func follows(sent []byte) bool {
	if onZooKeeper() {
		return watchedLog.Match(sent)
	}
	return bytes.Contains(sent, watchCall)
}

var (
	watchCall  = hpack.AppendHuffmanString(nil, "/etcdserverpb.Watch/Watch")
	watchedLog = regexp.MustCompile(`/logs/[0-9]{10}\x01`)
)

// darken silences the feed again and again, first when clients wait.
func (s *silence) darken(ctx context.Context) {
	for pause(ctx, lightFor); ctx.Err() == nil; pause(ctx, lightFor) {
		s.hole(rig.ToClient)
		s.isDark.Store(true)
		s.times++
		pause(ctx, darkFor)
		s.isDark.Store(false)
		s.hole(0)
	}
}

func (s *silence) hole(d rig.Direction) {
	for _, p := range s.proxies {
		p.BlackholeSome(d, follows)
	}
}

func (s *silence) compact(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, compactEvery) {
		done, err := s.store.Compact(ctx)
		if err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
		if done {
			s.compactions++
		}
	}
}

// passOn releases a lock at one replica for which a client waits at the other.
func (s *silence) passOn(ctx context.Context, c, waiter *drive.Client) {
	s.t.Helper()
	r := drive.Request{Lock: fmt.Sprint("silent:", c.Number), TTL: 20 * time.Second, Replica: direct}
	held, outcome := c.Acquire(s.ctx, r)
	if held == nil {
		s.t.Errorf("%s: acquire is %s", r.Lock, outcome)
		return
	}
	granted := make(chan drive.Answer, 1)
	r.Wait = 40 * time.Second
	go func() {
		a := waiter.Post(s.ctx, dark, r)
		waiter.Record(history.Acquire, drive.HoldOf(r, a), a)
		granted <- a
	}()
	_, err := s.store.AwaitBehind(s.ctx, r.Lock, held.ID)
	s.must(err)
	known := !s.isDark.Load()
	// half of the waiters are there when it begins
	for c.Number%2 == 0 && !s.isDark.Load() && ctx.Err() == nil {
		pause(ctx, 20*time.Millisecond)
	}
	if c.Number%2 == 0 {
		pause(ctx, rand.N(darkFor*2/3))
	}
	released, blind := c.Delete(s.ctx, direct, held), s.isDark.Load()
	c.Record(history.Release, held, released)
	if released.Status != http.StatusNoContent {
		s.t.Errorf("%s: release: %v", r.Lock, released)
	}
	answer := <-granted
	late := answer.Return - released.Return
	if answer.Status != http.StatusCreated {
		s.t.Errorf("%s: who waited was told, %v after the release: %v", r.Lock, late, answer)
		s.giveBack(waiter, r, answer)
		return
	}
	s.seen.Add(1)
	if blind {
		s.blind.Add(1)
	}
	if blind && known {
		s.before.Add(1)
	}
	if s.slowest.add(max(late, 0)); late > seenInTime() {
		s.t.Errorf(
			"%s: the grant was seen %v after the release, want at most %v", r.Lock, late, seenInTime(),
		)
	}
	if outcome := c.Release(s.ctx, direct, 3, drive.HoldOf(r, answer)); outcome != history.OK {
		s.t.Errorf("%s: release is %s", r.Lock, outcome)
	}
}

// giveBack releases what an answer says that the client still has.
func (s *silence) giveBack(waiter *drive.Client, r drive.Request, a drive.Answer) {
	if a.Problem.Entry == nil {
		return
	}
	a.Entry = *a.Problem.Entry
	h := drive.HoldOf(r, a)
	h.Waiting = true
	waiter.Release(s.ctx, direct, 3, h)
}

// interruptions is how often the replica gave its feed up.
func (s *silence) interruptions() int {
	log, err := os.ReadFile(s.replicas[dark].Log())
	s.must(err)
	return bytes.Count(log, []byte("the feed is interrupted and starts over"))
}
