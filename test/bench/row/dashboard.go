package row

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

const (
	browsers     = 50
	changeRate   = 20 // grants a second that the browsers are to show
	crowdedLocks = 1000
)

// runDashboard measures what operators cost who poll the overview of many locks, and how late they
// see what happens.
func runDashboard(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowClients(2*manyClients + askers + browsers); err != nil {
		return nil, err
	}
	var cs closers
	defer cs.closeInto(&err)
	d := &dashboardBench{bench: b, shown: load.NewHistogram()}
	for _, s := range []**served{&d.watchedServer, &d.other} {
		if *s, err = b.serveOne(ctx, &cs); err != nil {
			return nil, err
		}
		if err := d.fill(ctx, *s, &cs); err != nil {
			return nil, err
		}
	}
	before, err := live(ctx, d.watchedServer.replica)
	if err != nil {
		return nil, err
	}
	open, err := d.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, open.close()) }()
	if err := d.changes(ctx); err != nil {
		return nil, err
	}
	after, err := live(ctx, d.watchedServer.replica)
	if err != nil {
		return nil, err
	}
	d.grown = after - before
	b.logf("%s for what is watched", megabytes(d.grown))
	c, err := d.compareS1(ctx)
	if err != nil {
		return nil, err
	}
	return d.outcomes(c), nil
}

// dashboardBench is the row. One server is watched, the other has the same locks and is not:
// what is kept for operators is kept for a minute after the last one has looked.
type dashboardBench struct {
	*bench
	watchedServer, other *served
	screens              [browsers]screen
	shown                *load.Histogram
	grown                float64
	p99s                 []float64
}

// fill has many locks held, and entries wait for some of them.
func (d *dashboardBench) fill(ctx context.Context, s *served, cs *closers) error {
	if err := d.bench.fill(ctx, s.replica, cs); err != nil {
		return err
	}
	body := fmt.Appendf(nil, `{"async":true,"ttl_seconds":%d,"wait_seconds":%d}`, longTTL, longTTL)
	name := func(i int) string { return heldLock(i % min(crowdedLocks, d.Entries)) }
	if _, err := askAll(ctx, s.load.Clients(askers), d.Waiters, name, body, func(side.Ticket) {}); err != nil {
		return err
	}
	return awaitFigure(ctx, s.replica, waitingFigure, float64(d.Waiters))
}

// watch opens the browsers, which all see the overview.
func (d *dashboardBench) watch(ctx context.Context) (*polls, error) {
	var bearers []string
	for i := range browsers {
		token, err := d.watchedServer.Token("operations", "admin", fmt.Sprintf("operator-%d", i))
		if err != nil {
			return nil, err
		}
		bearers = append(bearers, token)
	}
	overview := d.watchedServer.URL() + "/admin/overview"
	return startPolls(ctx, overview, bearers, func(i int, answer []byte) { d.screens[i].show(answer) })
}

// changes measures when grants at a low rate are shown.
func (d *dashboardBench) changes(ctx context.Context) error {
	workers := d.watchedServer.load.Workers(max(1, int(changeRate*d.Duration.Seconds())))
	for round := range d.Rounds + 1 { // the first one is the warm-up
		sent, err := d.grant(ctx, workers, round)
		if err != nil {
			return err
		}
		shown, err := d.await(ctx, sent)
		if err != nil {
			return err
		}
		d.logf("round %d: %d grants shown to %d, p50 %s p99 %s", round, len(sent), browsers, millis(shown.Percentile(50)), millis(shown.Percentile(99)))
		if round > 0 {
			d.p99s = append(d.p99s, shown.Percentile(99).Seconds())
			d.shown.Merge(shown)
		}
		for _, w := range workers {
			if err := w.Release(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// seenAt is when something was at a revision of the store.
type seenAt struct {
	revision int64
	at       time.Time
}

// grant has each worker take a lock, one after the other, and returns when that was sent.
func (d *dashboardBench) grant(ctx context.Context, workers []load.Worker, round int) ([]seenAt, error) {
	tick := time.NewTicker(time.Second / changeRate)
	defer tick.Stop()
	var sent []seenAt
	for i, w := range workers {
		<-tick.C
		at := time.Now()
		fence, err := w.Acquire(ctx, fmt.Sprintf("shown:%d:%d", round, i))
		if err != nil {
			return nil, err
		}
		sent = append(sent, seenAt{fence, at})
	}
	return sent, nil
}

// await returns how late all browsers showed each of the grants, when they have.
func (d *dashboardBench) await(ctx context.Context, sent []seenAt) (*load.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shown := load.NewHistogram()
	for i := range d.screens {
		for !d.screens[i].shows(sent[len(sent)-1].revision) {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return nil, fmt.Errorf("a browser does not show what happens: %w", err)
			}
		}
		d.screens[i].take(sent, shown)
	}
	return shown, nil
}

// screen is what a browser was told.
type screen struct {
	mu   sync.Mutex
	told []seenAt
}

func (s *screen) show(data []byte) {
	now := seenAt{at: time.Now()}
	var message struct{ Revision int64 }
	if err := json.Unmarshal(data, &message); err != nil {
		return // what it should show is missed
	}
	now.revision = message.Revision
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, now)
}

func (s *screen) shows(revision int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.told) > 0 && s.told[len(s.told)-1].revision >= revision
}

// take adds how long after each was sent it was shown, and forgets what was told.
func (s *screen) take(sent []seenAt, shown *load.Histogram) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for _, one := range sent {
		for s.told[i].revision < one.revision {
			i++
		}
		shown.Record(s.told[i].at.Sub(one.at))
	}
	s.told = nil
}

func (d *dashboardBench) compareS1(ctx context.Context) (*comparison, error) {
	var sides []contender
	for _, s := range []*served{d.watchedServer, d.other} {
		workers := s.load.Workers(manyClients)
		if err := d.heat(ctx, workers); err != nil {
			return nil, err
		}
		name := map[bool]string{true: "50 browsers", false: "none"}[s == d.watchedServer]
		sides = append(sides, contender{name, s.pids, s.watched(d.bench, d.uncontended(workers))})
	}
	return d.compare(ctx, sides[0], sides[1])
}

func (d *dashboardBench) outcomes(c *comparison) []Outcome {
	const (
		latest = 1500 * time.Millisecond
		memory = 100e6
		effect = 0.9
	)
	what := fmt.Sprintf("%d browsers at the overview of %s locks and %s waiters, on %s: ", browsers, number(float64(d.Entries)), number(float64(d.Waiters)), &d.Store)
	p99 := seconds(load.Median(d.p99s))
	s1 := c.outcome("dashboard", what+"uncontended cycles of 128 clients, against without browsers", effect)
	s1.Notes = c.disturbance()
	return []Outcome{
		{
			ID: "dashboard", What: what + "a grant on the screen, p99", Ours: millis(p99), Bar: "≤ " + millis(latest), Met: verdict(p99 <= latest),
			OurP50: millis(d.shown.Percentile(50)), OurP99: millis(d.shown.Percentile(99)),
			Notes: []string{fmt.Sprintf("%d grants a second, counted from before the request is sent to when each browser has the first answer whose revision includes it; each asks once a second.", changeRate)},
		},
		{
			ID: "dashboard", What: what + "memory", Ours: megabytes(d.grown), Bar: "≤ " + megabytes(memory), Met: verdict(d.grown <= memory),
			Notes: []string{"What the server's heap and stacks have more after a collection than before the browsers came. " +
				"The comparison is with another server with the same locks, at which nobody looks."},
		},
		s1,
	}
}

func megabytes(n float64) string { return fmt.Sprintf("%.1f MB", n/1e6) }
