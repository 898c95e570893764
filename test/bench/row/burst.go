package row

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

const (
	// bystander is the other tenant, whose clients start so many cycles a second while
	// the requests arrive, and besideWorkers of them may be under way at once.
	bystander     = "bystander"
	besideRate    = 200
	besideWorkers = 64

	// burstTTL is so long that nothing that waits is renewed meanwhile, also where the
	// hand-overs take long.
	burstTTL = 180
	// settling is how long after a burst what it leaves is counted at the latest, which
	// is well before a lease ends.
	settling = 5 * time.Second
	// arrival bounds how long the requests may take to be answered or to wait, and
	// drained how long the hand-overs to all of them.
	arrival = 30 * time.Second
	drained = 2 * time.Minute
)

// runS14 measures what becomes of many requests that are sent at once, on each store.
func runS14(ctx context.Context, b *bench) ([]Outcome, error) {
	if err := allowClients(b.Waiters); err != nil {
		return nil, err
	}
	var outcomes []Outcome
	for _, r := range []*burstBench{
		{
			store: "embedded etcd",
			serve: func(ctx context.Context, cs *closers) (*served, error) {
				return b.serve(ctx, embedded, cs)
			},
			rehearsals: 1,
		},
		{store: "ZooKeeper", serve: b.serveOnZooKeeper, warmup: javaWarmup, rehearsals: 5},
	} {
		r.bench, r.got.one, r.got.many = b, load.NewHistogram(), load.NewHistogram()
		o, err := r.run(ctx)
		outcomes = append(outcomes, o...)
		if err != nil {
			return outcomes, fmt.Errorf("on %s: %w", r.store, err)
		}
	}
	return outcomes, nil
}

// burstBench is the row on one store.
type burstBench struct {
	*bench
	*served
	store  string
	serve  func(context.Context, *closers) (*served, error)
	warmup time.Duration // before the first round
	// rehearsals are bursts before it, the first to many locks: a store is slow at first, and Java
	// compiles code after some 10 000 runs.
	rehearsals int

	queue  []load.Worker // of S5
	crowd  []load.Worker
	beside []load.Worker
	got    burstFigures
}

// burstFigures are what the rounds found.
type burstFigures struct {
	joins     []float64   // a second
	handovers []load.Pair // a second, ours beside S5's
	p99       []load.Pair // seconds, ours with one lock beside that with many
	one, many *load.Histogram
	refused   []time.Duration
	failed    int
	failure   error
	left      int
}

func (r *burstBench) run(ctx context.Context) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	if r.served, err = r.serve(ctx, &cs); err != nil {
		return nil, err
	}
	if err := r.assemble(ctx, &cs); err != nil {
		return nil, err
	}
	for i := range r.rehearsals {
		if _, err := r.burst(ctx, r.Rounds+i, i > 0); err != nil {
			r.logf("before the first round: %v", err)
		}
	}
	for round := range r.Rounds {
		if err := r.round(ctx, round); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	if err := r.restart(ctx); err != nil {
		return nil, err
	}
	return r.outcomes(), nil
}

// assemble makes the clients, and connects those that come all at once.
func (r *burstBench) assemble(ctx context.Context, cs *closers) error {
	f := r.load
	f.WaitSeconds = queueSeconds
	r.queue = f.Workers(queueing)
	f.TTLSeconds = burstTTL
	r.crowd = f.Workers(r.Waiters + 1)
	other, err := clientsOf(r.replica, bystander, cs)
	if err != nil {
		return err
	}
	r.beside = other.Workers(besideWorkers)
	return errors.Join(side.Connect(ctx, r.crowd), side.Connect(ctx, r.beside))
}

// round takes S5's rate, then sends the requests to as many locks, then to one.
func (r *burstBench) round(ctx context.Context, round int) error {
	warm := *r.bench
	if round == 0 {
		warm.Warmup = max(warm.Warmup, r.warmup)
	}
	s5, err := warm.contend(ctx, r.queue, round, true)
	if err != nil {
		return fmt.Errorf("S5: %w", err)
	}
	r.logf("round %d: %s: S5 %.0f/s", round+1, r.store, s5.PerSecond())
	var many, one *burstRound
	for i, of := range []**burstRound{&many, &one} {
		if round%2 == 1 {
			of = []**burstRound{&one, &many}[i] // the first one finds the server rested
		}
		if *of, err = r.burst(ctx, round, of == &one); err != nil {
			return fmt.Errorf("a burst on one lock: %t: %w", of == &one, err)
		}
	}
	g := &r.got
	g.joins = append(g.joins, one.joins)
	g.handovers = append(g.handovers, load.Pair{Ours: one.handovers, Theirs: s5.PerSecond()})
	g.p99 = append(g.p99, load.Pair{
		Ours: one.beside.Percentile(99).Seconds(), Theirs: many.beside.Percentile(99).Seconds(),
	})
	g.one.Merge(one.beside)
	g.many.Merge(many.beside)
	g.refused = append(g.refused, one.refused...)
	g.failed, g.failure = g.failed+one.failed, errors.Join(g.failure, one.failure)
	for _, of := range []*burstRound{many, one} {
		r.logf("round %d: %s: %s", round+1, r.store, of)
	}
	return nil
}

// burstRound is what one burst came to.
type burstRound struct {
	joins, handovers float64
	beside           *load.Histogram
	refused          []time.Duration
	failed           int
	failure          error
	one              bool
	cost             usage
	took             time.Duration
}

func (b *burstRound) String() string {
	last := time.Duration(0)
	if len(b.refused) > 0 {
		last = slices.Max(b.refused)
	}
	return fmt.Sprintf(
		"one lock: %-5t %6.0f joins/s in %v, %d refused (after %v at most), %d failed, %.0f hand-overs/s, beside p50 %v p99 %v; cores: server %.2f, load %.2f, rest %.2f",
		b.one,
		b.joins,
		b.took,
		len(b.refused),
		last,
		b.failed,
		b.handovers,
		b.beside.Percentile(50),
		b.beside.Percentile(99),
		b.cost.server,
		b.cost.load,
		b.cost.rest,
	)
}

// burst has all clients send a request at once, to one lock that is held or to one each,
// beside the clients of another tenant. When all of them are answered or wait, the locks
// are released, by one after the other if it is one.
func (r *burstBench) burst(ctx context.Context, round int, one bool) (*burstRound, error) {
	ctx, cancel := context.WithTimeout(ctx, arrival+drained)
	defer cancel()
	name := func(i int) string { return fmt.Sprintf("burst:%d:%d", round, i) }
	holder, crowd := r.crowd[0], r.crowd[1:]
	if one {
		name = func(int) string { return fmt.Sprintf("burst:%d", round) }
		if _, err := holder.Acquire(ctx, name(0)); err != nil {
			return nil, err
		}
	}
	arrived := make(chan struct{})
	var beside *load.Result
	failed := make(chan error, 1)
	go func() {
		var err error
		beside, err = r.bystanders(ctx, round, arrived)
		failed <- err
	}()
	saved := r.profile(ctx, round, one)
	before := spend(r.pids)
	b := load.StartBurst(ctx, crowd, name)
	took, joined, err := r.awaitArrival(ctx, b, one)
	cost := spend(r.pids).since(before)
	close(arrived)
	if err = errors.Join(err, <-failed); err != nil {
		cancel()
		b.Release()
		return nil, errors.Join(err, b.Wait().Failure)
	}
	out := &burstRound{
		joins: float64(joined) / took.Seconds(), beside: beside.Acquire, one: one, cost: cost, took: took,
	}
	b.Release()
	released := b.Since()
	if one {
		if err := holder.Release(ctx); err != nil {
			return nil, err
		}
	}
	seen := b.Wait()
	out.refused, out.failed, out.failure = seen.Refused, seen.Failed, seen.Failure
	if one {
		out.handovers = float64(seen.Granted) / (seen.LastGrant - released).Seconds()
		err = errors.Join(seen.History.CheckExclusion(), seen.History.CheckFences())
	}
	return out, errors.Join(err, <-saved, r.countLeft(ctx))
}

// countLeft adds the locks that are still in use a while after a burst.
func (r *burstBench) countLeft(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(settling); ; {
		n := 0
		for _, t := range []string{tenant, bystander} {
			of, err := countLocks(ctx, r.replica, t)
			if err != nil {
				return err
			}
			n += of
		}
		if n == 0 || time.Now().After(end) {
			r.got.left += n
			return nil
		}
		<-tick.C
	}
}

// profile records the server's processor profile while the requests for one lock of the
// last round arrive, if profiles are wanted.
func (r *burstBench) profile(ctx context.Context, round int, one bool) <-chan error {
	saved := make(chan error, 1)
	if r.Profiles == "" || !one || round != r.Rounds-1 {
		saved <- nil
		return saved
	}
	go func() { saved <- r.saveProfile(ctx, r.replica, "profile?seconds=6", "cpu") }()
	return saved
}

// awaitArrival returns how long it took until every request was answered or waits, and
// how many were not refused.
func (r *burstBench) awaitArrival(
	ctx context.Context,
	b *load.Burst,
	one bool,
) (took time.Duration, joined int, err error) {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	const atMost = 50 * time.Millisecond // late, so little beside the seconds that it takes
	tick := time.NewTicker(atMost)
	defer tick.Stop()
	for {
		waiting := 0
		if one {
			if waiting, err = waitingNow(ctx, r.replica); err != nil {
				return 0, 0, err
			}
		}
		took = b.Since()
		seen := b.Seen()
		joined = seen.Granted + waiting
		if joined+len(seen.Refused)+seen.Failed >= r.Waiters {
			return took, joined, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, 0, fmt.Errorf(
				"%d granted, %d wait, %d refused, %d failed: %w", seen.Granted, waiting, len(seen.Refused),
				seen.Failed, ctx.Err(),
			)
		}
	}
}

func waitingNow(ctx context.Context, r *replica) (int, error) { return waiting(r)(ctx) }

// bystanders has the other tenant work until the requests have arrived.
func (r *burstBench) bystanders(
	ctx context.Context,
	round int,
	arrived <-chan struct{},
) (*load.Result, error) {
	o := load.Open{
		Workers: r.beside, Rate: besideRate, Duration: arrival, Until: arrived,
		Name: func(cycle int) string {
			return fmt.Sprintf("beside:%d:%d", round, cycle%(manyClients*namesPerWorker))
		},
	}
	result, err := o.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("the other tenant: %w", err)
	}
	return result, nil
}

// restart restarts the server, which lists the store's entries, and counts the locks.
func (r *burstBench) restart(ctx context.Context) error {
	if err := r.Terminate(ctx); err != nil {
		return err
	}
	if err := r.Restart(ctx); err != nil {
		return err
	}
	return r.countLeft(ctx)
}

// outcomes has a line for each figure of the row.
func (r *burstBench) outcomes() []Outcome {
	const (
		joins     = 5000
		late      = 100 * time.Millisecond
		handovers = 0.8
		slower    = 3
	)
	g := &r.got
	refused, inTime := "0", g.failed == 0
	if n := len(g.refused); n > 0 {
		last := slices.Max(g.refused)
		refused = fmt.Sprintf("%s, after %s at most", number(float64(n)), millis(last))
		inTime = inTime && last <= late
	}
	joined := load.Median(g.joins)
	out := []Outcome{
		{
			What: "joins", Ours: perSecond(joined), Bar: "≥ " + perSecond(joins),
			Met: verdict(joined >= joins),
		},
		{
			What: fmt.Sprintf("refused, in %d rounds", r.Rounds), Ours: refused,
			Bar: "0, or ≤ " + millis(late), Met: verdict(inTime),
		},
		{What: "hand-overs, against S5's"},
		{What: "p99 of another tenant's acquire, against the same for as many locks"},
		{What: "left behind", Ours: number(float64(g.left)), Bar: "0", Met: verdict(g.left == 0)},
	}
	out[2].compared(g.handovers, perSecond, atLeast(handovers))
	out[3].compared(g.p99, p99.text, atMost(slower))
	out[3].latencies(g.one, g.many)
	for i := range out {
		out[i].ID = "S14"
		out[i].What = fmt.Sprintf("%s requests at once for one lock, on %s: %s",
			number(float64(r.Waiters)), r.store, out[i].What)
	}
	out[0].Notes = r.notes()
	return out
}

func (r *burstBench) notes() []string {
	if r.got.failed == 0 {
		return nil
	}
	return []string{fmt.Sprintf(
		"On %s %d requests failed, one so: %v", r.store, r.got.failed, r.got.failure,
	)}
}
