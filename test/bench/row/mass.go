package row

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

const (
	massGrants = 20_000
	massTTL    = 300 * time.Second // within which each callback must come
	massAtOnce = 40                // requests
)

// runS19 grants many async readers at once, by the release of a writer, and counts their callbacks.
func runS19(ctx context.Context, b *bench) (_ []Outcome, err error) {
	var cs closers
	defer cs.closeInto(&err)
	r, err := b.startReplica(ctx, "", &cs, toLoopback...)
	if err != nil {
		return nil, err
	}
	a, err := newAttack(r, &cs)
	if err != nil {
		return nil, err
	}
	called := &massReceiver{entries: map[string]bool{}}
	to := httptest.NewServer(called)
	cs.add(func() error { to.Close(); return nil })
	writer, err := queueReaders(ctx, a, to.URL)
	if err != nil {
		return nil, err
	}
	joined, err := waitingNow(ctx, r)
	if err != nil {
		return nil, err
	}
	before, err := measure(r.PID())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err = a.do(ctx, http.MethodDelete, "/locks/mass", "", "Lock-Token", writer); err != nil {
		return nil, err
	}
	most := before
	for time.Since(began) < massTTL && called.count() < joined && ctx.Err() == nil {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		if now, err := measure(r.PID()); err == nil && now.all > most.all {
			most = now
		}
	}
	took, n := time.Since(began), called.count()
	b.logf("%d of %d are called back within %v; memory %.0f to %.0f MiB",
		n, joined, took.Round(time.Millisecond), before.all/(1<<20), most.all/(1<<20))
	return []Outcome{{
		ID: "S19", What: fmt.Sprintf("callbacks of %s grants at once", number(float64(joined))),
		Ours: number(float64(n)), Bar: "all within their TTL",
		Met: verdict(n == joined && n > massGrants/2),
		Notes: []string{fmt.Sprintf("S19 took %.0f s, at the quota of 500 attempts a second. "+
			"The server's memory grew from %.0f to %.0f MiB.",
			took.Seconds(), before.all/(1<<20), most.all/(1<<20))},
	}}, ctx.Err()
}

// queueReaders holds a lock, and queues async readers behind it. It returns the writer's token.
func queueReaders(ctx context.Context, a *attack, url string) (writer string, err error) {
	rotate := attack{client: a.client, base: a.base, bearer: a.hooks}
	if _, err := rotate.do(ctx, http.MethodPost, "/webhooks/callback-secret/rotate", ""); err != nil {
		return "", err
	}
	writer, err = a.do(ctx, http.MethodPost, "/locks/mass", `{"ttl_seconds":3600}`)
	if err != nil || writer == "" {
		return "", fmt.Errorf("the writer does not hold the lock: %w", err)
	}
	body := fmt.Sprintf(`{"mode":"shared","async":true,"wait_seconds":3600,"ttl_seconds":%.0f,`+
		`"callback_url":"%s/"}`, massTTL.Seconds(), url)
	var all sync.WaitGroup
	errs := make(chan error, massAtOnce)
	for range massAtOnce {
		all.Go(func() {
			for range massGrants / massAtOnce {
				if _, err := a.do(ctx, http.MethodPost, "/locks/mass", body); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return writer, <-errs
}

// massReceiver takes callbacks at once.
type massReceiver struct {
	mu      sync.Mutex
	entries map[string]bool
}

// ServeHTTP implements [http.Handler].
func (m *massReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e struct {
		Data struct{ Entry struct{ ID string } }
	}
	if json.NewDecoder(r.Body).Decode(&e) != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries[e.Data.Entry.ID] = true
}

func (m *massReceiver) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}
