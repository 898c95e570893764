package simulation

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// wants is a new request for locks, or now and then one whose key was used before.
func (c *client) wants() *asked {
	w := c.w
	if len(c.old) > 0 && w.percent(15) {
		return c.old[w.pick(len(c.old))]
	}
	req := service.AcquireRequest{
		Tenant: "acme", Holder: fmt.Sprint("worker-", c.n), Named: c.named, Claims: w.claims(),
		TTL: w.between(2*time.Second, 12*time.Second).Truncate(time.Millisecond),
	}
	if w.Pools > 0 && w.percent(w.Pools) {
		req.Claims, req.Any = w.pool()
	}
	req.Set = len(req.Claims) > 1
	if w.percent(20) {
		req.TTL = 2 * time.Minute
	}
	if !w.percent(w.Tries) {
		req.Wait = w.between(time.Second, 40*time.Second).Truncate(time.Millisecond)
	}
	if w.Async > 0 && req.Wait > 0 && w.percent(w.Async) {
		req.Async, req.TTL = true, max(req.TTL, service.MinAsyncTTL)
	}
	if w.Webhooks && req.Async && w.percent(70) {
		req.Callback = &lock.Callback{URL: callbackURL + fmt.Sprint(c.n), Secret: "secret"}
		req.TTL = max(req.TTL, 45*time.Second) // or it ends before it has to be called
	}
	if w.Asks > 0 && req.Wait > 0 && w.percent(w.Asks) {
		within := w.between(0, time.Minute)
		req.AskWithin = &within
	}
	req.OnlyNewest = w.Newest > 0 && w.percent(w.Newest)
	if w.percent(w.Keyed) {
		req.IdempotencyKey = fmt.Sprint("key-", c.n, "-", c.turns)
	}
	return &asked{req: req}
}

// claims are of one lock or several. The last lock is a semaphore, mostly.
func (w *world) claims() []lock.Claim {
	first := w.pick(w.Locks)
	claims := []lock.Claim{w.claim(first)}
	if w.percent(w.Sets) {
		claims = append(claims, w.claim((first+1)%w.Locks))
		lock.Canonical(claims)
	}
	return claims
}

// pool returns claims on several locks in some order, and how many of them suffice.
func (w *world) pool() (claims []lock.Claim, some int) {
	first, size := w.pick(w.Locks), 2+w.pick(w.Locks-1)
	for n := range size {
		claims = append(claims, w.claim((first+n)%w.Locks))
	}
	return claims, 1 + w.pick(size)
}

func (w *world) lockName(n int) string { return fmt.Sprint("lock-", n) }

func (w *world) claim(n int) lock.Claim {
	c := lock.Claim{Name: w.lockName(n), Mode: lock.Exclusive}
	switch x := w.pick(100); {
	case n == w.Locks-1 && n > 1 && x < 95:
		c.Mode, c.Limit, c.Permits = lock.Semaphore, 2, 1
		if w.percent(25) { // another version of the program, or a large job
			c.Limit = 1 + w.pick(3)
			c.Permits = 1 + w.pick(c.Limit)
		}
	case x < 20:
		c.Mode = lock.Shared
	}
	return c
}
