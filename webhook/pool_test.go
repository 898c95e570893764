package webhook_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/test/bubble"
	"github.com/fencepost/fencepost/webhook"
)

// dead is an attempt at a receiver that hangs.
func dead(ctx context.Context) {
	select {
	case <-time.After(webhook.Timeout):
	case <-ctx.Done():
	}
}

// newPool is closed with the test.
func newPool(t testing.TB, c webhook.PoolConfig) *webhook.Pool {
	p := webhook.NewPool(c)
	t.Cleanup(p.Close)
	return p
}

// startsAfter submits a job and returns how long it waited for a worker.
func startsAfter(p *webhook.Pool, tenant string) time.Duration {
	began := time.Now()
	started := make(chan time.Duration, 1)
	p.Submit(tenant, func(context.Context) { started <- time.Since(began) })
	return <-started
}

// TestHangingTenantsDelayNoOther: a thousand hanging receivers of one tenant, or of many together.
func TestHangingTenantsDelayNoOther(t *testing.T) {
	for _, tenants := range []int{1, 8, 40} {
		bubble.Test(t, func(t *testing.T) {
			p := newPool(t, webhook.PoolConfig{})
			for n := range tenants { // each finds as much free as there can be
				for range 1000 {
					p.Submit(fmt.Sprint("bad-", n), dead)
				}
			}
			for range 100 {
				synctest.Wait()
				if late := startsAfter(p, "good"); late != 0 {
					t.Fatalf("%d tenants: late by %s", tenants, late)
				}
				<-time.After(1700 * time.Millisecond)
			}
		})
	}
}

// TestTenantsTakeTurns where no worker is left at all.
func TestTenantsTakeTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPool(t, webhook.PoolConfig{Workers: 1})
		for range 1000 {
			p.Submit("a", dead)
		}
		if late := startsAfter(p, "b"); late > 2*webhook.Timeout {
			t.Errorf("late by %s", late)
		}
	})
}

// TestPoolKeepsItsBounds runs jobs of random tenants and lengths.
func TestPoolKeepsItsBounds(t *testing.T) {
	for seed := range uint64(20) {
		tenants, workers, most := 20, 12, 12 // there are too few workers
		if seed%2 == 0 {
			tenants, workers, most = 4, 200, 20 // each tenant has as many as it may
		}
		bubble.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := &watch{started: map[string][]int{}, running: map[string]int{}}
			p := newPool(t, webhook.PoolConfig{Workers: workers, PerTenant: 5})
			given := map[string][]int{}
			for i := range 600 {
				tenant := fmt.Sprint("t", random.IntN(tenants))
				given[tenant] = append(given[tenant], i)
				length := time.Duration(random.IntN(5)) * time.Second
				p.Submit(tenant, func(context.Context) { w.run(t, tenant, i, length) })
				if random.IntN(10) == 0 {
					<-time.After(time.Second)
				}
			}
			<-time.After(time.Hour)
			w.mu.Lock()
			defer w.mu.Unlock()
			for tenant, want := range given {
				if slices.Sort(w.started[tenant]); !slices.Equal(w.started[tenant], want) {
					t.Errorf("seed %d: %s ran %v, want %v", seed, tenant, w.started[tenant], want)
				}
			}
			if w.most != most {
				t.Errorf("seed %d: at most %d at once, want %d", seed, w.most, most)
			}
			if tenants, running := p.Load(); tenants != 0 || running != 0 {
				t.Errorf("seed %d: %d tenants and %d running are left", seed, tenants, running)
			}
		})
	}
}

// watch looks at what runs at once.
type watch struct {
	mu      sync.Mutex
	started map[string][]int
	running map[string]int
	all     int
	most    int
}

func (w *watch) run(t *testing.T, tenant string, number int, length time.Duration) {
	w.change(tenant, 1)
	w.mu.Lock()
	w.started[tenant] = append(w.started[tenant], number)
	if w.running[tenant] > 5 {
		t.Errorf("too much at once: %v", w.running)
	}
	w.mu.Unlock()
	<-time.After(length)
	w.change(tenant, -1)
}

func (w *watch) change(tenant string, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[tenant] += by
	w.all += by
	w.most = max(w.most, w.all)
}

// TestClosePool ends what runs, and nothing begins afterwards.
func TestClosePool(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := webhook.NewPool(webhook.PoolConfig{PerTenant: 1})
		var ran []error
		for range 2 {
			p.Submit("a", func(ctx context.Context) {
				dead(ctx)
				ran = append(ran, ctx.Err())
			})
		}
		synctest.Wait()
		p.Close()
		p.Submit("a", dead)
		p.Close()
		if len(ran) != 1 || ran[0] == nil {
			t.Errorf("ran: %v", ran)
		}
	})
}

// TestPoolUnderRace is for the race detector: many submit, and it is closed meanwhile.
func TestPoolUnderRace(t *testing.T) {
	p := newPool(t, webhook.PoolConfig{})
	var done sync.WaitGroup
	for n := range 8 {
		done.Go(func() {
			for i := range 500 {
				p.Submit(fmt.Sprint(i%3), func(context.Context) {})
				if n == 0 && i == 400 {
					p.Close()
				}
			}
		})
	}
	done.Wait()
}

// TestPoolPacesTenants: of a tenant no more begin than Next lets it, in their order, and others do
// not wait for that.
func TestPoolPacesTenants(t *testing.T) {
	const each, jobs = 2 * time.Millisecond, 100
	bubble.Test(t, func(t *testing.T) {
		next := time.Now()
		p := newPool(t, webhook.PoolConfig{Workers: 8, Next: func(tenant string) time.Duration {
			if tenant == "other" {
				return 0
			}
			if after := time.Until(next); after > 0 {
				return after
			}
			next = next.Add(each)
			return 0
		}})
		type start struct {
			job int
			at  time.Time
		}
		began := make(chan start, jobs)
		for i := range jobs {
			p.Submit("much", func(context.Context) { began <- start{i, time.Now()} })
		}
		if late := startsAfter(p, "other"); late > 0 {
			t.Errorf("another tenant's is late by %s", late)
		}
		last := <-began
		for range jobs - 1 {
			is := <-began
			if is.at.Sub(last.at) != each || is.job != last.job+1 {
				t.Fatalf("%d begins %v after %d", is.job, is.at.Sub(last.at), last.job)
			}
			last = is
		}
	})
}

// TestPausesAreNotShort: a tenant that may begin one more in a moment is asked each millisecond.
func TestPausesAreNotShort(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		asked := 0
		next := func(string) time.Duration { asked++; return time.Microsecond }
		p := webhook.NewPool(webhook.PoolConfig{Next: next})
		p.Submit("a", func(context.Context) { t.Error("it began") })
		<-time.After(time.Second - time.Millisecond)
		p.Close()
		<-time.After(time.Hour)
		if asked > 1000 {
			t.Errorf("asked %d times in a second", asked)
		}
	})
}

// TestAllBeginAfterAPause: a tenant that was paused has as many workers afterwards as it would have
// had at once, also next to one that may have no more.
func TestAllBeginAfterAPause(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const workers, n = 64, 4
		var paused atomic.Bool
		next := func(tenant string) time.Duration {
			if tenant == "paused" && paused.Load() {
				return time.Second
			}
			return 0
		}
		p := newPool(t, webhook.PoolConfig{Workers: workers, Next: next})
		for range workers {
			p.Submit("hangs", dead)
		}
		var began atomic.Int32
		paused.Store(true)
		for range n {
			p.Submit("paused", func(ctx context.Context) {
				began.Add(1)
				dead(ctx)
			})
		}
		paused.Store(false)
		<-time.After(time.Second)
		synctest.Wait()
		if began.Load() != n {
			t.Errorf("%d begin, want %d", began.Load(), n)
		}
	})
}
