package row

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
	"github.com/fencepost/fencepost/test/bench/side"
)

const (
	batchLock = "batch"
	batchAt   = 16 // jobs at a time
	batchTTL  = 30 // seconds
	batchWork = 50 * time.Millisecond
	// batchTime bounds a round in units of what it would take if it all were work.
	batchTime = 10
)

// runBatch has many jobs wait for a semaphore, each of which is called when its turn has come.
func runBatch(ctx context.Context, b *bench) (_ []Outcome, err error) {
	if err := allowClients(4 * askers); err != nil {
		return nil, err
	}
	var cs closers
	defer cs.closeInto(&err)
	s, err := b.serveOne(ctx, &cs, toLoopback...)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(callbackSecret(ctx, s, &cs), b.heat(ctx, s.load.Workers(manyClients))); err != nil {
		return nil, err
	}
	var posted, took []float64
	var faults []string
	grants := load.NewHistogram()
	for round := range min(b.Rounds, 3) {
		jobs := newJobs(b.Waiters, s.load.Clients(2*batchAt))
		asked, all, err := jobs.run(ctx, s.load.Clients(askers), fmt.Sprintf("%s:%d", batchLock, round))
		if err != nil {
			return nil, err
		}
		wrong := jobs.check()
		b.logf("round %d: all asked within %v, done within %v; a turn from its release to its call p50 %s p99 %s; %d requests and %d calls again, %d faults", round+1,
			asked.Round(time.Millisecond), all.Round(time.Millisecond), millis(jobs.turn.Percentile(50)), millis(jobs.turn.Percentile(99)), jobs.refused, jobs.again, len(wrong))
		posted, took, faults = append(posted, asked.Seconds()), append(took, all.Seconds()), append(faults, wrong...)
		grants.Merge(jobs.turn)
	}
	return b.outcomesOfBatch(load.Median(posted), load.Median(took), faults, grants), nil
}

// callbackSecret makes the secret without which there are no callbacks.
func callbackSecret(ctx context.Context, s *served, cs *closers) error {
	token, err := s.Token(tenant, "webhooks:write", "bench")
	if err != nil {
		return err
	}
	f := s.load
	f.Bearers, f.Connections = []string{token}, connections(cs)
	_, err = f.Clients(1)[0].Post(ctx, http.StatusOK, "/webhooks/callback-secret/rotate", nil)
	return err
}

func (b *bench) outcomesOfBatch(posted, took float64, faults []string, turn *load.Histogram) []Outcome {
	const atMost = 10 * time.Second
	n := number(float64(b.Waiters))
	what := fmt.Sprintf("%s jobs, %d at a time, on %s: ", n, batchAt, &b.Store)
	ideal := ideal(b.Waiters)
	return []Outcome{
		{
			ID: "batch", What: what + "all have asked", Ours: secs(seconds(posted)), Bar: "≤ " + secs(atMost), Met: verdict(seconds(posted) <= atMost),
			Notes: []string{fmt.Sprintf("Each job is an async acquire of one semaphore with a callback, by one of %d clients. When it is called it renews, works for %v and releases. "+
				"The latencies are those from a release being sent to the call that it lets in.", askers, batchWork)},
		},
		{
			ID: "batch", What: what + "done, against jobs × work ÷ places", Ours: secs(seconds(took)), Theirs: secs(ideal), Ratio: fmt.Sprintf("%.2f×", took/ideal.Seconds()),
			OurP50: millis(turn.Percentile(50)), OurP99: millis(turn.Percentile(99)),
		},
		{
			ID: "batch", What: what + "done twice, not at all, or before their turn", Ours: number(float64(len(faults))), Bar: "0", Met: verdict(len(faults) == 0),
			Notes: faults[:min(len(faults), 10)],
		},
	}
}

func ideal(jobs int) time.Duration { return time.Duration(jobs) * batchWork / batchAt }

func secs(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// jobs are those of a round.
type jobs struct {
	clients chan *side.Client // of the jobs that run
	ended   chan error

	mu      sync.Mutex
	called  map[string]*job // by the id of the call
	again   int             // calls of jobs that had been called
	refused int             // requests that were sent again
	wrong   []string
	want    int
	turn    *load.Histogram
}

// job is one that was called.
type job struct {
	entry           string
	fence           int64
	began, released time.Time
}

func newJobs(n int, clients []*side.Client) *jobs {
	j := &jobs{clients: make(chan *side.Client, len(clients)), ended: make(chan error, n), called: map[string]*job{}, want: n, turn: load.NewHistogram()}
	for _, c := range clients {
		j.clients <- c
	}
	return j
}

// run returns how long it took until all had asked, and until all were done.
func (j *jobs) run(ctx context.Context, askers []*side.Client, name string) (asked, all time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime*ideal(j.want)+time.Minute)
	defer cancel()
	to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { j.call(ctx, r) }))
	defer to.Close()
	body := fmt.Appendf(nil, `{"mode":"semaphore","limit":%d,"async":true,"ttl_seconds":%d,"wait_seconds":%d,"callback_url":%q}`, batchAt, batchTTL, longTTL, to.URL)
	began := time.Now()
	j.refused, err = askAll(ctx, askers, j.want, func(int) string { return name }, body, func(side.Ticket) {})
	if asked = time.Since(began); err != nil {
		return asked, 0, err
	}
	for done := range j.want {
		select {
		case err := <-j.ended:
			if err != nil {
				return asked, 0, err
			}
		case <-ctx.Done():
			return asked, 0, fmt.Errorf("%d of %d jobs ended: %w", done, j.want, ctx.Err())
		}
	}
	return asked, time.Since(began), nil
}

// call takes a call, and has its job run once.
func (j *jobs) call(ctx context.Context, r *http.Request) {
	at := time.Now()
	var e struct {
		Type string
		Data struct {
			Lock  string
			Entry side.Ticket
		}
	}
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, json.Unmarshal(body, &e)); err != nil {
		return // it will come again
	}
	id := r.Header.Get("webhook-id")
	t := e.Data.Entry
	t.Name = e.Data.Lock
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.called[id] != nil {
		j.again++
		return
	}
	one := &job{entry: t.ID, fence: t.Fence, began: at}
	j.called[id] = one
	if e.Type != "lock.acquired" {
		j.wrong = append(j.wrong, e.Type+" of "+t.ID)
		j.ended <- nil
		return
	}
	go func() { j.ended <- j.work(ctx, one, t) }()
}

func (j *jobs) work(ctx context.Context, one *job, t side.Ticket) error {
	c := <-j.clients
	defer func() { j.clients <- c }()
	if err := c.Renew(ctx, t); err != nil {
		return err
	}
	if err := pause(ctx, batchWork); err != nil {
		return err
	}
	one.released = time.Now()
	return c.Release(ctx, t)
}

// check returns what was not as it has to be, when all have ended: a job that was done twice
// or not at all, or one that was called before its turn, while as many of those before it had
// not been released as there are places.
func (j *jobs) check() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	wrong := slices.Clone(j.wrong)
	all := make([]*job, 0, len(j.called))
	entries := map[string]bool{}
	for _, one := range j.called {
		all, entries[one.entry] = append(all, one), true
	}
	if len(all) != j.want || len(entries) != j.want {
		wrong = append(wrong, fmt.Sprintf("%d calls for %d entries, of %d", len(all), len(entries), j.want))
	}
	slices.SortFunc(all, func(a, b *job) int { return int(a.fence - b.fence) })
	var released []time.Time // by those before, in order
	for i, one := range all {
		if i >= batchAt {
			lets := released[i-batchAt] // the release that leaves room for it
			if one.began.Before(lets) {
				wrong = append(wrong, one.entry+" was called before its turn")
			}
			j.turn.Record(one.began.Sub(lets))
		}
		at, _ := slices.BinarySearchFunc(released, one.released, time.Time.Compare)
		released = slices.Insert(released, at, one.released)
	}
	return wrong
}
