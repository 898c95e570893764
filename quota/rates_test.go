package quota_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/quota"
)

// took counts the requests of so many that are taken, and returns the last refusal.
func (r *replica) took(tenant string, l quota.Limit, n int) (taken int, last *lock.Error) {
	for range n {
		if err := r.Take(tenant, l, 1); err == nil {
			taken++
		} else if !errors.As(err, &last) {
			panic(err)
		}
	}
	return taken, last
}

// TestEachRateHasABucketPerTenantAndReplica: one second's tokens, and none of another rate.
func TestEachRateHasABucketPerTenantAndReplica(t *testing.T) {
	run(t, func(t *testing.T, a, b *replica) {
		a.sets(t, "acme", quota.Overrides{
			"requests_per_second": 10, "renewals_per_second": 4, "releases_per_second": 0,
		})
		settle()
		n, e := a.took("acme", quota.Requests, 100)
		if n != 10 {
			t.Errorf("%d requests are taken at once", n)
		}
		want := lock.Exceeded{Name: "requests_per_second", Limit: 10, Used: 10}
		if e.Code != lock.RateLimited || e.RetryAfter <= 0 || e.RetryAfter > 100*time.Millisecond ||
			*e.Quota != want {
			t.Errorf("rejected with %+v, %+v", e, e.Quota)
		}
		if n, _ := a.took("acme", quota.Renewals, 100); n != 4 {
			t.Errorf("%d renewals are taken", n)
		}
		if n, none := a.took("acme", quota.Releases, 100); n != 0 || none.RetryAfter != time.Minute {
			t.Errorf("%d releases are taken, where none may be", n)
		}
		if n, _ := a.took("other", quota.Requests, 100); n != 100 {
			t.Errorf("%d requests of another tenant are taken", n)
		}
		if n, _ := b.took("acme", quota.Requests, 100); n != 10 {
			t.Errorf("%d requests are taken at another replica", n)
		}
		if n := spent(a, "acme"); n != 10 || spent(a, "unknown") != 0 {
			t.Errorf("%d are used up", n)
		}
		<-time.After(e.RetryAfter)
		if n, _ := a.took("acme", quota.Requests, 100); n != 1 {
			t.Errorf("after Retry-After %d are taken", n)
		}
		<-time.After(time.Hour)
		if n, _ := a.took("acme", quota.Requests, 100); n != 10 {
			t.Errorf("an hour later %d are taken", n)
		}
	})
}

// TestCostOfARequest: a request takes its cost at once or nothing, and never more than half of the
// bucket, so that each can be served.
func TestCostOfARequest(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{"requests_per_second": 100})
		a.sets(t, "tiny", quota.Overrides{"requests_per_second": 1})
		settle()
		for _, c := range []struct{ cost, spent int }{{32, 32}, {1000, 82}, {32, 82}, {18, 100}} {
			err := a.Take("acme", quota.Requests, c.cost)
			if n := spent(a, "acme"); n != c.spent {
				t.Errorf("after a cost of %d, %v, %d are used up, want %d", c.cost, err, n, c.spent)
			}
		}
		if err := a.Take("tiny", quota.Requests, 32); err != nil {
			t.Error(err)
		}
	})
}

// TestNextSaysAfterHowLong: a webhook attempt over the rate waits, and is not refused.
func TestNextSaysAfterHowLong(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{"webhook_attempts_per_second": 10})
		settle()
		next := func() (counted int, after time.Duration) {
			for after == 0 {
				if after = a.Next("acme", quota.WebhookAttempts); after == 0 {
					counted++
				}
			}
			return counted, after
		}
		n, after := next()
		if n != 10 || after <= 0 || after > 100*time.Millisecond {
			t.Errorf("%d at once, and the next one after %s", n, after)
		}
		<-time.After(after)
		if n, _ := next(); n != 1 {
			t.Errorf("%d when there is one token", n)
		}
	})
}

// TestOtherLimitsHoldAtOnce: a tenant whose limit was 0 is served again.
func TestOtherLimitsHoldAtOnce(t *testing.T) {
	run(t, func(t *testing.T, a, b *replica) {
		for _, most := range []int{0, 5, 20, 3} {
			a.sets(t, "acme", quota.Overrides{"requests_per_second": most})
			settle()
			_, _ = b.took("acme", quota.Requests, 100)
			<-time.After(time.Second)
			if n, _ := b.took("acme", quota.Requests, 100); n != most {
				t.Errorf("%d are taken, want %d", n, most)
			}
		}
	})
}

// TestBucketsAreBounded: over the bound idle tenants are evicted first.
func TestBucketsAreBounded(t *testing.T) {
	run(t, func(t *testing.T, a, _ *replica) {
		a.sets(t, "acme", quota.Overrides{"requests_per_second": 1})
		settle()
		ask := func(round string, n int) {
			for i := range n {
				_, _ = a.took(fmt.Sprint(round, i), quota.Requests, 1)
			}
			if n := a.Remembered(); n > quota.MaxBuckets {
				t.Errorf("%d tenants have buckets", n)
			}
		}
		ask("a", quota.MaxBuckets-1)
		<-time.After(2 * time.Second)
		_, _ = a.took("acme", quota.Requests, 1)
		ask("keen", 50)
		ask("b", quota.MaxBuckets/2)
		for i := range 50 { // of one alone it would be chance
			if spent(a, fmt.Sprint("keen", i)) != 1 {
				t.Fatal("a busy tenant was evicted before idle ones")
			}
		}
		ask("c", 2*quota.MaxBuckets) // within one second
	})
}

// TestConcurrentRequestsTakeNoMoreThanTheLimit: a limiter that sees an older time refills twice.
func TestConcurrentRequestsTakeNoMoreThanTheLimit(t *testing.T) {
	const limit, tenants = 50_000, 10
	d := *quota.Standard()
	d[quota.Requests] = limit
	b := quota.New(quota.Config{Defaults: &d})
	for i := range tenants {
		var taken atomic.Int64
		var all sync.WaitGroup
		began, tenant := time.Now(), fmt.Sprint("tenant-", i)
		for range 256 {
			all.Go(func() {
				for time.Since(began) < 150*time.Millisecond {
					if b.Take(tenant, quota.Requests, 1) == nil {
						taken.Add(1)
					}
					runtime.Gosched()
				}
			})
		}
		all.Wait()
		most := float64(limit) * (1 + time.Since(began).Seconds())
		if float64(taken.Load()) > 1.01*most {
			t.Errorf("%d are taken where %.0f may be", taken.Load(), most)
		}
	}
}

// TestTakeDoesNotAllocate.
func TestTakeDoesNotAllocate(t *testing.T) {
	b := quota.New(quota.Config{})
	if n := testing.AllocsPerRun(1000, func() {
		if err := b.Take("acme", quota.Requests, 1); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// spent returns how many requests of a second are used up.
func spent(r *replica, tenant string) int {
	var used quota.Limits
	r.Spent(tenant, &used)
	return used[quota.Requests]
}
