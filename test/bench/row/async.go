package row

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

const (
	asyncLocks = 100 // that the entries wait for, evenly
	asyncTTL   = 30  // seconds
	askers     = 64  // clients that ask at once
	releasers  = 16  // clients that release
	// renewedFor is six or seven times the time between two renewals of one entry: as they came
	// together, they are renewed together at first, and a time of three could have four.
	renewedFor   = 60 * time.Second
	handOverRate = 50 // a second, before a replica dies and after
	beforeDeath  = 5 * time.Second
	// afterDeath is longer than a lease: what nobody kept is gone by then.
	afterDeath = (asyncTTL + 10) * time.Second
)

// runAsync measures entries that wait without a request at two replicas, one of which dies.
func runAsync(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowClients(2 * askers); err != nil {
		return nil, err
	}
	var cs closers
	defer cs.closeInto(&err)
	a := &asyncBench{bench: b, turns: newTurns()}
	if a.store, err = b.startStore(ctx, &cs); err != nil {
		return nil, err
	}
	for range 2 {
		r, err := b.launch(ctx, true, a.store.address, &cs, a.store.login...)
		if err != nil {
			return nil, err
		}
		a.replicas = append(a.replicas, r)
	}
	if err := a.assemble(&cs); err != nil {
		return nil, err
	}
	return a.run(ctx)
}

// asyncBench is the row.
type asyncBench struct {
	*bench
	store     *started
	replicas  []*replica // the last one dies
	load      side.Fencepost
	askers    []*side.Client // of both
	releasers []*side.Client // of the one that lives
	turns     *turns

	perSecond, bytes float64
	before           *load.Histogram // of hand-overs, before the death
	lost, left       int
}

func (a *asyncBench) assemble(cs *closers) error {
	var err error
	if a.load, err = clients(a.replicas[0], cs); err != nil {
		return err
	}
	both := a.load
	other, err := clients(a.replicas[1], cs)
	if err != nil {
		return err
	}
	both.Bases = append(both.Bases[:1:1], other.Bases...)
	a.askers, a.releasers = both.Clients(askers), a.load.Clients(releasers)
	return nil
}

func (a *asyncBench) run(ctx context.Context) (_ []Outcome, err error) {
	if err := a.fill(ctx); err != nil {
		return nil, err
	}
	if err := a.countRenewals(ctx); err != nil {
		return nil, err
	}
	seen := &readers{}
	if err := seen.follow(ctx, a.load, 0, "/events?types=lock.acquired,lock.expired,lock.wait_timeout,lock.deadlock_refused,lock.revoked", a.turns.tell); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, seen.close()) }()
	stop := a.turns.work(ctx, a.releasers)
	err = a.handOver(ctx)
	if err = errors.Join(err, stop()); err != nil {
		return nil, err
	}
	return a.outcomes(), nil
}

// fill has all entries wait, and finds out how much memory each takes.
func (a *asyncBench) fill(ctx context.Context) error {
	for i := range asyncLocks {
		t, _, _, err := a.releasers[0].Ask(ctx, asyncLock(i), fmt.Appendf(nil, `{"ttl_seconds":%d}`, longTTL))
		if err != nil {
			return err
		}
		a.turns.hold(t)
	}
	var before [2]float64
	for i, r := range a.replicas {
		var err error
		if before[i], err = live(ctx, r); err != nil {
			return err
		}
	}
	began := time.Now()
	body := fmt.Appendf(nil, `{"async":true,"ttl_seconds":%d,"wait_seconds":%d}`, asyncTTL, longTTL)
	again, err := askAll(ctx, a.askers, a.Waiters, asyncLock, body, a.turns.queue)
	if err != nil {
		return err
	}
	a.logf("%d entries wait after %v; %d requests were sent again", a.Waiters, time.Since(began).Round(time.Millisecond), again)
	for i, r := range a.replicas {
		if err := awaitFigure(ctx, r, waitingFigure, float64(a.Waiters)); err != nil {
			return err
		}
		now, err := live(ctx, r)
		if err != nil {
			return err
		}
		a.bytes = max(a.bytes, (now-before[i])/float64(a.Waiters))
	}
	a.logf("%.0f bytes live for each", a.bytes)
	return nil
}

func asyncLock(i int) string { return fmt.Sprintf("async:%d", i%asyncLocks) }

// countRenewals counts how many leases are renewed while nothing else happens.
func (a *asyncBench) countRenewals(ctx context.Context) error {
	pids := append([]int{}, a.store.pids...)
	for _, r := range a.replicas {
		pids = append(pids, r.PID())
	}
	began, start := time.Now(), spend(pids)
	before, err := a.store.renewals(ctx, a.replicas)
	if err != nil {
		return err
	}
	if err := pause(ctx, renewedFor); err != nil {
		return err
	}
	after, err := a.store.renewals(ctx, a.replicas)
	a.perSecond = (after - before) / time.Since(began).Seconds()
	used := spend(pids).since(start)
	a.logf("%.0f renewals a second  cores: servers and store %.2f, rest %.2f", a.perSecond, used.server, used.rest)
	return err
}

// handOver releases one entry after the other, kills a replica meanwhile, and lets all others
// have their turn.
func (a *asyncBench) handOver(ctx context.Context) error {
	if err := a.turns.pace(ctx, handOverRate, beforeDeath); err != nil {
		return err
	}
	a.before = a.turns.reset()
	a.logf("hand-overs: p50 %s p99 %s; now one of two replicas is killed", millis(a.before.Percentile(50)), millis(a.before.Percentile(99)))
	if err := a.replicas[1].Kill(); err != nil {
		return err
	}
	if err := a.turns.pace(ctx, handOverRate, afterDeath); err != nil {
		return err
	}
	wait, err := waitingNow(ctx, a.replicas[0])
	if err != nil {
		return err
	}
	granted, late, _ := a.turns.sofar()
	a.lost = a.Waiters - granted - wait
	a.logf("hand-overs after it: p99 %s, %v at most; %d granted, %d wait", millis(late.Percentile(99)), late.Percentile(100), granted, wait)
	a.left = a.turns.drain(ctx, a.Waiters)
	return ctx.Err()
}

func (a *asyncBench) outcomes() []Outcome {
	const (
		renewals = 1200
		memory   = 2048
		late     = 2 * time.Second
	)
	_, after, faults := a.turns.sofar()
	what := fmt.Sprintf("%s async entries of %d s at two replicas on %s: ", number(float64(a.Waiters)), asyncTTL, &a.Store)
	out := []Outcome{
		{What: what + "renewals", Ours: number(a.perSecond) + "/s", Bar: "≤ " + number(renewals) + "/s", Met: verdict(a.perSecond <= renewals)},
		{What: what + "memory of an entry", Ours: kib(a.bytes / 1024), Bar: "≤ " + kib(memory/1024), Met: verdict(a.bytes <= memory)},
		{What: what + "one replica killed: lost, or told wrongly", Ours: number(float64(a.lost + a.left + len(faults))), Bar: "0", Met: verdict(a.lost+a.left+len(faults) == 0)},
		{
			What: what + "one replica killed: the latest grant, against p99 before", Ours: millis(after.Percentile(100)), Theirs: millis(a.before.Percentile(99)),
			Bar: "≤ " + millis(late), Met: verdict(after.Percentile(100) <= late),
			OurP50: millis(after.Percentile(50)), OurP99: millis(after.Percentile(99)), TheirP50: millis(a.before.Percentile(50)), TheirP99: millis(a.before.Percentile(99)),
		},
	}
	for i := range out {
		out[i].ID = "async"
	}
	by := "etcd's own count"
	if a.Store.zooKeeper {
		by = "what the servers sent"
	}
	out[0].Notes = append([]string{fmt.Sprintf("The entries wait for %d locks. Renewals are %s over %v in which nothing else happens. Memory is what the server that grew more has in use after a collection, heap and stacks, "+
		"before and after. Then locks are handed over at %d a second for %v, one server is killed with -9, and %v later all others have their turn. A grant is late by the time from the release before it being sent to its event; "+
		"each entry has to be granted once and in the order of its lock.", asyncLocks, by, renewedFor, handOverRate, beforeDeath, afterDeath)}, faults...)
	return out
}
