package quota

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxBuckets bounds the tenants that have buckets. Over it, tenants without a request within
	// idleAfter are evicted, at most once in sweepEvery, or else an arbitrary one: an evicted tenant
	// starts with full buckets again.
	maxBuckets = 10_000
	idleAfter  = 2 * time.Second // within which every bucket is full again
	sweepEvery = time.Second
)

// buckets has the token buckets of each tenant.
type buckets struct {
	mu      sync.Mutex
	tenants map[string]*tenantBuckets
	swept   time.Time
}

// tenantBuckets are a tenant's, by rate. Each holds the tokens of one second.
type tenantBuckets struct {
	limits *Limits // that the buckets have
	asked  time.Time
	each   [Count - Requests]*rate.Limiter
}

// Take takes n tokens of one of the tenant's rates, or none and returns a [lock.RateLimited] error
// with the time after which there are as many. One request takes half of a second's tokens at most,
// so that small requests of the same tenant cannot keep it from being served.
func (b *Book) Take(tenant string, l Limit, n int) error {
	limits := b.Of(tenant)
	b.buckets.mu.Lock()
	defer b.buckets.mu.Unlock()
	now := time.Now() // under the mutex: a bucket that sees an older time refills twice
	bucket := b.buckets.of(tenant, limits, now)[l-Requests]
	if after := take(bucket, min(n, max(1, limits[l]/2)), now); after > 0 {
		return limits.TooFast(l, used(bucket, now), after)
	}
	return nil
}

// Next takes one token, or none and returns after how long there is one.
func (b *Book) Next(tenant string, l Limit) (after time.Duration) {
	limits := b.Of(tenant)
	b.buckets.mu.Lock()
	defer b.buckets.mu.Unlock()
	now := time.Now()
	return take(b.buckets.of(tenant, limits, now)[l-Requests], 1, now)
}

// Spent sets the rates of into to how many of a second's tokens are used up at this replica.
func (b *Book) Spent(tenant string, into *Limits) {
	b.buckets.mu.Lock()
	defer b.buckets.mu.Unlock()
	if t := b.buckets.tenants[tenant]; t != nil {
		for i, bucket := range t.each {
			into[int(Requests)+i] = used(bucket, time.Now())
		}
	}
}

func take(bucket *rate.Limiter, n int, now time.Time) (after time.Duration) {
	r := bucket.ReserveN(now, n)
	if !r.OK() { // the limit is 0
		return time.Minute
	}
	if after = r.DelayFrom(now); after > 0 {
		r.CancelAt(now)
	}
	return after
}

func used(bucket *rate.Limiter, now time.Time) int {
	return max(0, bucket.Burst()-int(bucket.TokensAt(now)))
}

// of returns a tenant's buckets, with its limits.
func (b *buckets) of(
	tenant string,
	limits *Limits,
	now time.Time,
) *[Count - Requests]*rate.Limiter {
	t := b.tenants[tenant]
	if t == nil {
		b.evict(now)
		t = &tenantBuckets{}
		b.tenants[tenant] = t
	}
	t.asked = now
	if t.limits != limits {
		t.limits = limits
		t.follow(limits[Requests:], now)
	}
	return &t.each
}

// follow gives the buckets other limits. A bucket whose limit was 0 is full.
func (t *tenantBuckets) follow(limits []int, now time.Time) {
	for i, most := range limits {
		if t.each[i] == nil || t.each[i].Burst() == 0 {
			t.each[i] = rate.NewLimiter(rate.Limit(most), most)
		}
		t.each[i].SetLimitAt(now, rate.Limit(most))
		t.each[i].SetBurstAt(now, most)
	}
}

// evict makes space for one more tenant.
func (b *buckets) evict(now time.Time) {
	if len(b.tenants) < maxBuckets {
		return
	}
	if now.Sub(b.swept) >= sweepEvery {
		b.swept = now
		maps.DeleteFunc(b.tenants, func(_ string, t *tenantBuckets) bool {
			return now.Sub(t.asked) >= idleAfter
		})
	}
	for tenant := range b.tenants {
		if len(b.tenants) < maxBuckets {
			return
		}
		delete(b.tenants, tenant)
	}
}
