package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/lock"
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

func submit(t testing.TB, p *webhook.Pool, jobs ...webhook.Job) {
	t.Helper()
	for _, j := range jobs {
		if err := p.Submit(j); err != nil {
			t.Fatal(err)
		}
	}
}

// newPool is closed with the test, at once.
func newPool(t testing.TB, c webhook.PoolConfig) *webhook.Pool {
	p := webhook.NewPool(c)
	t.Cleanup(func() { closeNow(p) })
	return p
}

func closeNow(p *webhook.Pool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.Close(ctx)
}

// startsAfter submits a job and returns how long it waited for a worker.
func startsAfter(t testing.TB, p *webhook.Pool, j webhook.Job) time.Duration {
	t.Helper()
	began := time.Now()
	started := make(chan time.Duration, 1)
	j.Run = func(context.Context) { started <- time.Since(began) }
	submit(t, p, j)
	return <-started
}

// TestDeadReceiversDelayNobodyElse: a thousand of one tenant, or of many together.
func TestDeadReceiversDelayNobodyElse(t *testing.T) {
	for _, tenants := range []int{1, 8, 40} {
		t.Run(fmt.Sprint(tenants), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newPool(t, webhook.PoolConfig{})
				for n := range tenants { // one after the other, so that each finds as much free as there can be
					for i := range 1000 {
						submit(t, p, webhook.Job{Tenant: fmt.Sprintf("bad-%d", n), Target: fmt.Sprint(i), Run: dead})
					}
				}
				for range 100 {
					synctest.Wait()
					if late := startsAfter(t, p, webhook.Job{Tenant: "good", Target: "live"}); late != 0 {
						t.Fatalf("late by %s", late)
					}
					<-time.After(1700 * time.Millisecond)
				}
			})
		})
	}
}

// TestDeadReceiverDelaysNoOther of the same tenant.
func TestDeadReceiverDelaysNoOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPool(t, webhook.PoolConfig{})
		for i := range 1000 {
			submit(t, p, webhook.Job{Tenant: "a", Target: "dead", Order: fmt.Sprint(i), Run: dead})
		}
		synctest.Wait()
		if late := startsAfter(t, p, webhook.Job{Tenant: "a", Target: "live"}); late != 0 {
			t.Errorf("late by %s", late)
		}
	})
}

// TestTargetsTakeTurns: where a tenant has no worker left, its targets take turns.
func TestTargetsTakeTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPool(t, webhook.PoolConfig{PerTenant: 1})
		for range 900 {
			submit(t, p, webhook.Job{Tenant: "a", Target: "dead", Run: dead})
		}
		if late := startsAfter(t, p, webhook.Job{Tenant: "a", Target: "live"}); late > 2*webhook.Timeout {
			t.Errorf("late by %s", late)
		}
		for i := range 50 {
			submit(t, p, webhook.Job{Tenant: "a", Target: "dead", Order: fmt.Sprint(i), Run: dead})
		}
		if late := startsAfter(t, p, webhook.Job{Tenant: "a", Target: "live"}); late > 2*webhook.Timeout {
			t.Errorf("late by %s", late)
		}
	})
}

// TestTenantsTakeTurns: where no worker is left at all, tenants take turns.
func TestTenantsTakeTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPool(t, webhook.PoolConfig{Workers: 1})
		for i := range 1000 {
			submit(t, p, webhook.Job{Tenant: "a", Target: fmt.Sprint(i), Run: dead})
		}
		if late := startsAfter(t, p, webhook.Job{Tenant: "b", Target: "live"}); late > 2*webhook.Timeout {
			t.Errorf("late by %s", late)
		}
	})
}

// TestPoolKeepsItsPromises runs jobs of random tenants, targets, orders and lengths.
func TestPoolKeepsItsPromises(t *testing.T) {
	for seed := range uint64(20) {
		tenants, workers, most := 20, 12, 12 // there are too few workers
		if seed%2 == 0 {
			tenants, workers, most = 4, 200, 20 // each tenant has as many as it may
		}
		bubble.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := &watch{started: map[string][]int{}, running: map[string]int{}}
			p := newPool(t, webhook.PoolConfig{Workers: workers, PerTenant: 5, PerTarget: 2})
			given := map[string][]int{}
			for i := range 600 {
				j := webhook.Job{
					Tenant: fmt.Sprint("t", random.IntN(tenants)), Target: fmt.Sprint("g", random.IntN(4)), Order: fmt.Sprint("o", random.IntN(3)), Bytes: 10,
				}
				key := j.Tenant + j.Target + j.Order
				given[key] = append(given[key], i)
				length := time.Duration(random.IntN(5)) * time.Second
				j.Run = func(context.Context) { w.run(t, j, i, length) }
				submit(t, p, j)
				if random.IntN(10) == 0 {
					<-time.After(time.Second)
				}
			}
			<-time.After(time.Hour)
			w.mu.Lock()
			defer w.mu.Unlock()
			for key, want := range given {
				if !slices.Equal(w.started[key], want) {
					t.Errorf("seed %d: %s ran as %v, was given as %v", seed, key, w.started[key], want)
				}
			}
			if w.most != most {
				t.Errorf("seed %d: at most %d at once, want %d", seed, w.most, most)
			}
			if tenants, load, running := p.Load(); tenants != 0 || load != (webhook.Bound{}) || running != 0 {
				t.Errorf("seed %d: %d tenants, %+v and %d running are left", seed, tenants, load, running)
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

func (w *watch) run(t *testing.T, j webhook.Job, number int, length time.Duration) {
	key := j.Tenant + j.Target + j.Order
	w.change(j, 1)
	w.mu.Lock()
	w.started[key] = append(w.started[key], number)
	if w.running[key] > 1 || w.running[j.Tenant+j.Target] > 2 || w.running[j.Tenant] > 5 {
		t.Errorf("too much at once: %v", w.running)
	}
	w.mu.Unlock()
	<-time.After(length)
	w.change(j, -1)
}

func (w *watch) change(j webhook.Job, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range []string{j.Tenant, j.Tenant + j.Target, j.Tenant + j.Target + j.Order} {
		w.running[key] += by
	}
	w.all += by
	w.most = max(w.most, w.all)
}

// TestPoolIsBounded: what does not fit is refused, and there is room again afterwards.
func TestPoolIsBounded(t *testing.T) {
	bounds := webhook.PoolConfig{
		Target: webhook.Bound{Jobs: 3, Bytes: 100}, Tenant: webhook.Bound{Jobs: 5, Bytes: 200}, All: webhook.Bound{Jobs: 12, Bytes: 400},
	}
	for name, test := range map[string]struct {
		job  func(i int) webhook.Job
		want int
	}{
		"jobs of a target":         {func(int) webhook.Job { return webhook.Job{Tenant: "a", Target: "a"} }, 3},
		"bytes of a target":        {func(int) webhook.Job { return webhook.Job{Tenant: "a", Target: "a", Bytes: 40} }, 2},
		"one job that is too much": {func(int) webhook.Job { return webhook.Job{Tenant: "a", Target: "a", Bytes: 101} }, 0},
		"jobs of a tenant":         {func(i int) webhook.Job { return webhook.Job{Tenant: "a", Target: fmt.Sprint(i)} }, 5},
		"bytes of a tenant":        {func(i int) webhook.Job { return webhook.Job{Tenant: "a", Target: fmt.Sprint(i), Bytes: 90} }, 2},
		"jobs of all":              {func(i int) webhook.Job { return webhook.Job{Tenant: fmt.Sprint(i), Target: "a"} }, 12},
		"bytes of all":             {func(i int) webhook.Job { return webhook.Job{Tenant: fmt.Sprint(i), Target: "a", Bytes: 100} }, 4},
		// Three tenants leave as much free as each of them has, less what they share.
		"shares": {func(i int) webhook.Job { return webhook.Job{Tenant: fmt.Sprint(i % 3), Target: fmt.Sprint(i)} }, 9},
	} {
		bubble.Test(t, func(t *testing.T) {
			p := newPool(t, bounds)
			for round := range 2 {
				taken := 0
				for i := range 30 {
					j := test.job(i)
					j.Run = dead
					err := p.Submit(j)
					if err == nil {
						taken++
						continue
					}
					if fault, ok := errors.AsType[*lock.Error](err); !ok || fault.Code != lock.Overloaded || fault.RetryAfter == 0 {
						t.Errorf("%s: %v", name, err)
					}
				}
				if taken != test.want {
					t.Errorf("%s, round %d: %d were taken, want %d", name, round, taken, test.want)
				}
				<-time.After(time.Hour)
			}
		})
	}
}

func TestClosePool(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := webhook.NewPool(webhook.PoolConfig{PerTarget: 1})
		ran := make(chan string, 10)
		for _, name := range []string{"first", "second"} {
			submit(t, p, webhook.Job{Tenant: "a", Target: "a", Run: func(ctx context.Context) {
				dead(ctx)
				ran <- fmt.Sprint(name, ctx.Err())
			}})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		p.Close(ctx)
		if took := time.Since(began); took != 10*time.Second || len(ran) != 1 || <-ran != "firstcontext canceled" {
			t.Errorf("closed after %s", took)
		}
		err := p.Submit(webhook.Job{Run: dead})
		if !errors.Is(err, lock.Draining) {
			t.Errorf("Submit after Close: %v", err)
		}
		p.Close(ctx) // again
	})
}

// TestCloseLetsWhatRunsEnd if that is in time.
func TestCloseLetsWhatRunsEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := webhook.NewPool(webhook.PoolConfig{})
		var interrupted error
		submit(t, p, webhook.Job{Run: func(ctx context.Context) {
			<-time.After(time.Second)
			interrupted = ctx.Err()
		}})
		began := time.Now()
		p.Close(t.Context())
		if took := time.Since(began); took != time.Second || interrupted != nil {
			t.Errorf("closed after %s, %v", took, interrupted)
		}
	})
	closeNow(webhook.NewPool(webhook.PoolConfig{})) // one that never ran
}

// TestPoolUnderRace is for the race detector: many submit, and it is closed meanwhile.
func TestPoolUnderRace(t *testing.T) {
	p := newPool(t, webhook.PoolConfig{})
	var done sync.WaitGroup
	for n := range 8 {
		done.Go(func() {
			for i := range 500 {
				_ = p.Submit(webhook.Job{Tenant: fmt.Sprint(i % 3), Target: fmt.Sprint(n), Run: func(context.Context) {}})
				if n == 0 && i == 400 {
					closeNow(p)
				}
			}
		})
	}
	done.Wait()
}

// TestPoolPacesTenants: of a tenant no more begin than it is let, those begin nevertheless, in their order, and others
// do not wait for that.
func TestPoolPacesTenants(t *testing.T) {
	const perSecond, jobs = 20, 100
	bubble.Test(t, func(t *testing.T) {
		began, counted := time.Now(), map[string]int{}
		p := newPool(t, webhook.PoolConfig{Next: func(tenant string) time.Duration { // at once as many as in a second
			if lasted := time.Since(began).Seconds(); tenant == "much" && float64(counted[tenant]) >= perSecond*(1+lasted) {
				return 50 * time.Millisecond
			}
			counted[tenant]++
			return 0
		}})
		var mu sync.Mutex
		var ran []int
		last := time.Time{}
		for i := range jobs {
			submit(t, p, webhook.Job{Tenant: "much", Target: fmt.Sprint(i % 7), Order: "same", Run: func(context.Context) {
				mu.Lock()
				defer mu.Unlock()
				ran, last = append(ran, i), time.Now()
			}})
		}
		if late := startsAfter(t, p, webhook.Job{Tenant: "other", Target: "other"}); late > 0 {
			t.Errorf("another tenant's is late by %s", late)
		}
		<-time.After(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if took := last.Sub(began); len(ran) != jobs || took < 3900*time.Millisecond || took > 4200*time.Millisecond {
			t.Errorf("%d of %d ran, in %s", len(ran), jobs, took)
		}
		for target := range 7 {
			if of := slices.DeleteFunc(slices.Clone(ran), func(i int) bool { return i%7 != target }); !slices.IsSorted(of) {
				t.Errorf("out of order: %v", of)
			}
		}
		if tenants, load, running := p.Load(); tenants != 0 || load != (webhook.Bound{}) || running != 0 {
			t.Errorf("%d tenants, %+v and %d running are left", tenants, load, running)
		}
	})
}

// TestPausedTenantHoldsUpNobody: who stands behind it gets the worker that it was not given.
func TestPausedTenantHoldsUpNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		may := true
		p := newPool(t, webhook.PoolConfig{Workers: 1, Next: func(tenant string) time.Duration {
			if tenant == "other" || may {
				may = false
				return 0
			}
			return time.Second
		}})
		long := func(context.Context) { <-time.After(time.Second / 2) }
		submit(t, p, webhook.Job{Tenant: "much", Run: long}, webhook.Job{Tenant: "much", Order: "next", Run: long})
		if late := startsAfter(t, p, webhook.Job{Tenant: "other"}); late != time.Second/2 {
			t.Errorf("late by %s", late)
		}
	})
}

// TestPausesAreNotShort: who may begin one more in a moment is asked each millisecond, and not all the time.
func TestPausesAreNotShort(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		asked := 0
		p := newPool(t, webhook.PoolConfig{Next: func(string) time.Duration { asked++; return time.Microsecond }})
		submit(t, p, webhook.Job{Tenant: "a", Run: func(context.Context) {}})
		<-time.After(time.Second - time.Millisecond)
		closeNow(p)
		if asked > 1000 {
			t.Errorf("asked %d times in a second", asked)
		}
	})
}

// TestClosePoolWhilePaused: nothing begins afterwards.
func TestClosePoolWhilePaused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		asked := 0
		p := webhook.NewPool(webhook.PoolConfig{Next: func(string) time.Duration { asked++; return time.Minute }})
		submit(t, p, webhook.Job{Tenant: "a", Run: func(context.Context) { t.Error("it began") }})
		closeNow(p)
		<-time.After(time.Hour)
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestVoidJobsTakeNoTurn: what attempts nothing is not counted, so that what is behind it begins as soon as ever; its tenant
// has no more workers for it.
func TestVoidJobsTakeNoTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		counted := 0
		var void, began atomic.Bool
		void.Store(true)
		p := newPool(t, webhook.PoolConfig{PerTarget: 1, Next: func(string) time.Duration {
			if counted == 1 {
				return time.Minute
			}
			counted++
			return 0
		}})
		job := webhook.Job{Tenant: "a", Target: "a", Run: func(context.Context) {}, Void: void.Load}
		for range 100 {
			submit(t, p, job)
		}
		submit(t, p, webhook.Job{Tenant: "a", Target: "a", Run: func(context.Context) { began.Store(true) }, Void: func() bool { return false }})
		if synctest.Wait(); !began.Load() || counted != 1 {
			t.Errorf("what is behind it has begun: %t, and %d were counted", began.Load(), counted)
		}
		void.Store(false)
		submit(t, p, job)
		synctest.Wait()
		if _, load, _ := p.Load(); load.Jobs != 1 {
			t.Errorf("%d wait, want the one that may not begin", load.Jobs)
		}
		void.Store(true)
		<-time.After(2 * time.Second)
		if _, load, _ := p.Load(); load.Jobs != 0 {
			t.Errorf("%d wait, though it attempts nothing", load.Jobs)
		}
	})
}

// TestNoBurstAfterPauses: what a tenant may begin in a second begins evenly, and not some together.
func TestNoBurstAfterPauses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const each = 2 * time.Millisecond
		next := time.Now()
		p := newPool(t, webhook.PoolConfig{Next: func(string) time.Duration {
			if after := time.Until(next); after > 0 {
				return after
			}
			next = next.Add(each)
			return 0
		}})
		began := make(chan time.Time, 100)
		for i := range cap(began) {
			submit(t, p, webhook.Job{Tenant: "a", Order: fmt.Sprint(i), Run: func(context.Context) { began <- time.Now() }})
		}
		last := <-began
		for range cap(began) - 1 {
			at := <-began
			if at.Sub(last) != each {
				t.Fatalf("one begins %v after the one before, want %v", at.Sub(last), each)
			}
			last = at
		}
	})
}

// TestAllBeginAfterAPause: a tenant that was paused has as many workers afterwards as it would have had at once, also
// beside one that may have no more.
func TestAllBeginAfterAPause(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const workers, n = 64, 4
		var paused atomic.Bool
		p := newPool(t, webhook.PoolConfig{Workers: workers, Next: func(tenant string) time.Duration {
			if tenant == "paused" && paused.Load() {
				return time.Second
			}
			return 0
		}})
		for i := range workers {
			submit(t, p, webhook.Job{Tenant: "hangs", Target: fmt.Sprint(i), Run: dead})
		}
		var began atomic.Int32
		paused.Store(true)
		for i := range n {
			submit(t, p, webhook.Job{Tenant: "paused", Target: "one", Order: fmt.Sprint(i), Run: func(ctx context.Context) {
				began.Add(1)
				dead(ctx)
			}})
		}
		paused.Store(false)
		<-time.After(time.Second)
		synctest.Wait()
		if began.Load() != n {
			t.Errorf("%d begin, want %d", began.Load(), n)
		}
	})
}

// TestWhatRunsIsCounted: each that attempts something is counted before it begins, also where others that attempt nothing
// stand beside it.
func TestWhatRunsIsCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var counted, ran atomic.Int32
		p := newPool(t, webhook.PoolConfig{Workers: 1, Next: func(string) time.Duration { counted.Add(1); return 0 }})
		for i := range 10 {
			void := i%2 == 1
			submit(t, p, webhook.Job{Tenant: "acme", Order: fmt.Sprint(i), Void: func() bool { return void }, Run: func(context.Context) {
				<-time.After(time.Second)
				if !void {
					ran.Add(1)
				}
				if counted.Load() != ran.Load() {
					t.Errorf("at the %d. %d are counted, and %d ran", i+1, counted.Load(), ran.Load())
				}
			}})
		}
		<-time.After(time.Minute)
	})
}
