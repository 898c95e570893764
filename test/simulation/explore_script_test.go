package simulation

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
)

// step is what a client of a scenario does at an instant since the script began, or as soon as it
// has its answer to the step before.
type step struct {
	at   time.Duration
	on   int // the replica
	kind kind
	req  *service.AcquireRequest
	same bool // with the request of its last acquire
	both bool // at both replicas at once
}

// ask is a part of a request for locks.
type ask func(*service.AcquireRequest)

// apart keeps ends of leases, which no goroutine of the world schedules, from the instants of
// requests: a history replays only if one thing happens at an instant.
const apart = 333 * time.Microsecond

// take acquires locks. A request waits for 8 s and has a lease of 4 s, unless it says otherwise.
func take(at time.Duration, on int, asks ...ask) step {
	req := &service.AcquireRequest{Tenant: tenant, Wait: 8 * time.Second, TTL: 4 * time.Second}
	for _, a := range asks {
		a(req)
	}
	req.Set = len(req.Claims) > 1
	req.TTL += apart
	return step{at: at, on: on, kind: acquire, req: req}
}

// retake sends the same request again.
func retake(at time.Duration, on int) step {
	return step{at: at, on: on, kind: acquire, same: true}
}

func give(at time.Duration, on int) step  { return step{at: at, on: on, kind: release} }
func keep(at time.Duration, on int) step  { return step{at: at, on: on, kind: renew} }
func wait(at time.Duration, on int) step  { return step{at: at, on: on, kind: goOn} }
func expel(at time.Duration, on int) step { return step{at: at, on: on, kind: revoke} }

// takeAtBoth sends one request to both replicas at once.
func takeAtBoth(at time.Duration, asks ...ask) step {
	s := take(at, 0, asks...)
	s.both = true
	return s
}

func claiming(n int, mode lock.Mode, permits, limit int) ask {
	return func(r *service.AcquireRequest) {
		r.Claims = append(r.Claims, lock.Claim{
			Name: fmt.Sprint("lock-", n), Mode: mode, Permits: permits, Limit: limit,
		})
		lock.Canonical(r.Claims)
	}
}

func on(n int) ask                     { return claiming(n, lock.Exclusive, 0, 0) }
func sharing(n int) ask                { return claiming(n, lock.Shared, 0, 0) }
func permits(some, of int) ask         { return claiming(0, lock.Semaphore, some, of) }
func try(r *service.AcquireRequest)    { r.Wait = 0 }
func newest(r *service.AcquireRequest) { r.OnlyNewest = true }
func named(r *service.AcquireRequest)  { r.Named = true }
func waits(d time.Duration) ask        { return func(r *service.AcquireRequest) { r.Wait = d } }
func lease(d time.Duration) ask        { return func(r *service.AcquireRequest) { r.TTL = d } }
func key(text string) ask {
	return func(r *service.AcquireRequest) { r.IdempotencyKey = text }
}

// held open for so long, after which the client goes on waiting by its token.
func pollsAfter(d time.Duration) ask { return func(r *service.AcquireRequest) { r.Hold = d } }

// anyOf wants one of two locks.
func anyOf(n, other int) ask {
	return func(r *service.AcquireRequest) {
		on(n)(r)
		on(other)(r)
		r.Any = 1
	}
}

func async(r *service.AcquireRequest) { r.Async, r.TTL = true, service.MinAsyncTTL }

// calledBack has the client's entry be called back.
func calledBack(client int) ask {
	return func(r *service.AcquireRequest) {
		r.Async, r.TTL = true, 75*time.Second
		r.Callback = &lock.Callback{URL: callbackURL + fmt.Sprint(client), Secret: "secret"}
	}
}

// pause is until a client's next step.
func (c *client) pause() time.Duration {
	switch w := c.w; {
	case c.again != nil:
		return cmp.Or(w.explorer.scenario.retry, 100*time.Millisecond)
	case len(c.script) > 0:
		return scriptFrom + c.script[0].at - w.now()
	default:
		return w.Length - w.now() + time.Millisecond
	}
}

// play has the client do its next step. A request with a key whose outcome it does not know it
// sends again, to the next replica.
func (c *client) play() {
	if c.again != nil {
		c.on = (c.on + 1) % len(c.w.replicas)
		c.acquire(c.again)
		return
	}
	if c.pause() > 0 {
		return
	}
	s := c.script[0]
	c.script, c.on = c.script[1:], s.on
	switch {
	case s.kind == revoke:
		c.expel()
	case s.kind == acquire && !s.same:
		req := *s.req
		req.Holder = fmt.Sprint("worker-", c.n)
		c.last = &asked{req: req}
		c.acquire(c.last)
		if s.both {
			twin := c.asking(c.last)
			twin.client, twin.replica = c, c.w.replicaFrom(1)
			c.send(twin)
		}
	case s.kind == acquire:
		c.acquire(c.last)
	case len(c.has) > 0:
		c.begin(c.about(c.has[len(c.has)-1], s.kind))
	}
}

// expel has an operator end the first entry of the first lock.
func (c *client) expel() {
	c.w.truth.catchUp()
	if q := c.w.truth.queues[c.w.lockName(0)]; q != nil && len(q.now()) > 0 {
		e := q.now()[0]
		c.begin(&call{kind: revoke, asked: &asked{}, claims: e.Claims, id: e.ID, number: e.Number})
	}
}
