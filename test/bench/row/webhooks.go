package row

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/fencepost/fencepost/test/bench/load"
)

// The row about webhooks: so many grants a second, and how many events are told for each.
const (
	grantsPerSecond = 200
	eventsOfGrant   = 1
)

// toLoopback lets webhooks go to receivers of the benchmark.
var toLoopback = []string{"--webhook-allow", "127.0.0.0/8", "--webhook-allow-http", "--webhook-ports", "*"}

// runWebhooks measures from a request to the first byte of the webhook that tells of its grant.
func runWebhooks(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs, toLoopback...)
	if err != nil {
		return nil, err
	}
	to := newReceiver()
	cs.add(func() error { to.Close(); return nil })
	if err := subscribe(ctx, r, to.URL); err != nil {
		return nil, err
	}
	f, err := clients(r, &cs)
	if err != nil {
		return nil, err
	}
	var p99s []float64
	all := load.NewHistogram()
	for round := range b.Rounds + 1 { // the first one waits for who sends
		to.reset()
		workers := to.timed(f.Workers(openWorkers))
		result, err := load.Open{
			Workers: workers, Rate: grantsPerSecond, Duration: b.Warmup + b.Duration,
			Name: func(cycle int) string { return fmt.Sprintf("bench:told:%d:%d", round, cycle) },
		}.Run(ctx)
		if err != nil {
			return nil, err
		}
		told, err := to.await(ctx, int(result.Cycles)*eventsOfGrant)
		if err != nil {
			return nil, err
		}
		b.logf("round %d: %d webhooks, p50 %s, p99 %s", round, told.Count(), millis(told.Percentile(50)), millis(told.Percentile(99)))
		if round > 0 {
			p99s = append(p99s, told.Percentile(99).Seconds())
			all.Merge(told)
		}
	}
	return []Outcome{outcomeWebhooks(all, load.Median(p99s))}, nil
}

func outcomeWebhooks(all *load.Histogram, p99 float64) Outcome {
	const atMost = 100 * time.Millisecond
	return Outcome{
		ID: "webhooks", What: fmt.Sprintf("from a request to the webhook of its grant, %d a second", grantsPerSecond),
		Ours: millis(seconds(p99)), Bar: "≤ " + millis(atMost), Met: verdict(seconds(p99) <= atMost),
		OurP50: millis(all.Percentile(50)), OurP99: millis(all.Percentile(99)),
		Notes: []string{"One subscription to lock.acquired, one replica on the embedded store, a receiver in the benchmark's process that answers at once. " +
			"Counted from before the request for a free lock is sent, which is before the grant, to when its webhook begins to arrive. The first figure is the median of the rounds' p99."},
	}
}

// receiver takes webhooks and knows for how long each lock's grant was on its way.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	began map[string]time.Time // by lock
	told  *load.Histogram
}

func newReceiver() *receiver {
	r := &receiver{}
	r.reset()
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	return r
}

func (r *receiver) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.told = map[string]time.Time{}, load.NewHistogram()
}

func (r *receiver) serve(_ http.ResponseWriter, req *http.Request) {
	arrived := time.Now()
	var e struct{ Data struct{ Lock string } }
	if body, err := io.ReadAll(req.Body); err != nil || json.Unmarshal(body, &e) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if began, ok := r.began[e.Data.Lock]; ok {
		delete(r.began, e.Data.Lock) // told again, it does not count
		r.told.Record(arrived.Sub(began))
	}
}

// await waits for so many webhooks, for a minute at most.
func (r *receiver) await(ctx context.Context, n int) (*load.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r.mu.Lock()
		told, count := r.told, int(r.told.Count())
		r.mu.Unlock()
		if count >= n {
			return told, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d webhooks came", count, n)
		}
	}
}

// timed has the workers' acquires noted.
func (r *receiver) timed(workers []load.Worker) []load.Worker {
	for i, w := range workers {
		workers[i] = &timedWorker{w, r}
	}
	return workers
}

type timedWorker struct {
	load.Worker
	to *receiver
}

// Acquire implements [load.Worker].
func (w *timedWorker) Acquire(ctx context.Context, name string) (int64, error) {
	w.to.mu.Lock()
	w.to.began[name] = time.Now()
	w.to.mu.Unlock()
	return w.Worker.Acquire(ctx, name)
}

// subscribe has the receiver told of grants.
func subscribe(ctx context.Context, r *replica, url string) error {
	token, err := r.Token(tenant, "webhooks:write", "bench")
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"url": url, "events": []string{"lock.acquired"}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL()+"/webhooks", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("POST /webhooks: %s", resp.Status)
	}
	return nil
}
