package side

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/fencepost/fencepost/test/bench/load"
)

// Fencepost says how clients of the API server take locks.
type Fencepost struct {
	Connections *Connections
	// Base is the address of the server, Bearers are the tokens of clients; workers
	// are spread evenly over them.
	Base    *url.URL
	Bearers []string
	// TTLSeconds is the lease, 30 when zero.
	TTLSeconds int
	// WaitSeconds is how long to queue, 0 for not at all; less than the server
	// holds a request open, as the workers do not ask again.
	WaitSeconds int
	// Renews has each worker renew a lock once before it releases it.
	Renews bool
}

// Workers returns n clients.
func (f Fencepost) Workers(n int) []load.Worker {
	workers := make([]load.Worker, n)
	for i := range workers {
		workers[i] = f.worker(i)
	}
	return workers
}

// Connect opens the connections of workers that [Fencepost.Workers] made, as those of
// clients that have been there for a while, and waits for an answer on each.
func Connect(ctx context.Context, workers []load.Worker) error {
	const atOnce = 64
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for k := range errs {
		all.Go(func() {
			for i := k; i < len(workers) && errs[k] == nil; i += atOnce {
				_, errs[k] = workers[i].(*fencepostWorker).http.expect(
					ctx, http.StatusOK, http.MethodGet, "/healthz", nil, nil,
				)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (f Fencepost) worker(i int) *fencepostWorker {
	if f.TTLSeconds == 0 {
		f.TTLSeconds = ttlSeconds
	}
	authorization := []string{"Bearer " + f.Bearers[i%len(f.Bearers)]}
	return &fencepostWorker{
		http:    newCaller(f.Connections, f.Base, nil),
		acquire: http.Header{"Authorization": authorization, "Content-Type": {"application/json"}},
		release: http.Header{"Authorization": authorization, "Lock-Token": {""}},
		renews:  f.Renews,
		body:    fmt.Appendf(nil, `{"ttl_seconds":%d,"wait_seconds":%d}`, f.TTLSeconds, f.WaitSeconds),
	}
}

type fencepostWorker struct {
	http             *caller
	acquire, release http.Header
	body             []byte
	path             string
	renews           bool
}

func (w *fencepostWorker) Acquire(ctx context.Context, name string) (int64, error) {
	w.path = "/locks/" + name
	answer, err := w.http.expect(ctx, http.StatusCreated, http.MethodPost, w.path, w.acquire, w.body)
	if err != nil {
		return 0, err
	}
	var entry struct {
		Token string `json:"token"`
		Fence int64  `json:"fence"`
	}
	if err := json.Unmarshal(answer, &entry); err != nil {
		return 0, fmt.Errorf("read the entry: %w", err)
	}
	w.release["Lock-Token"][0] = entry.Token
	return entry.Fence, nil
}

func (w *fencepostWorker) Release(ctx context.Context) error {
	if w.renews {
		_, err := w.http.expect(ctx, http.StatusOK, http.MethodPut, w.path+"/renew", w.release, nil)
		if err != nil {
			return err
		}
	}
	_, err := w.http.expect(ctx, http.StatusNoContent, http.MethodDelete, w.path, w.release, nil)
	return err
}
