package audit

import (
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/lock"
)

// size is how much a share takes at once and in a day, in KiB: each record takes one, and one
// more for each full KiB. Within the retention a share cannot exceed its bound, so no record
// has to make space for others.
type size struct{ burst, daily int }

// A pool is a tenant's, see [Record.pool].
func poolSize() size { return size{4000, 2000} }

// An actor can take a part of the pool.
func actorSize() size { return size{1000, 500} }

// leave is how many times as much as it took an actor leaves in the pool. So the next actor has
// some, although others took all that they could.
const leave = 3

// share names what a tenant's actors share. The subject of a pool is empty.
type share struct{ pool, tenant, subject string }

// shares bounds how much comes to be on record through one replica. The zero value is ready.
type shares struct {
	mu     sync.Mutex
	pools  buckets // apart, so that many subjects cannot evict the bound of their tenant
	actors buckets
}

// take counts a record of so many bytes, or returns [lock.RateLimited].
func (s *shares) take(r *Record, bytes int, now time.Time) error {
	cost := 1 + bytes>>10
	of := share{pool: r.pool(), tenant: r.By.Tenant}
	s.mu.Lock()
	defer s.mu.Unlock()
	pool := s.pools.get(of, poolSize(), now)
	of.subject = r.By.Subject
	actor := s.actors.get(of, actorSize(), now)
	if wait := max(until(actor, cost, now), untilLeft(pool, actor, cost, now)); wait > 0 {
		return &lock.Error{
			Code: lock.RateLimited, Detail: "the audit has no capacity left for this actor; " +
				"retry after Retry-After",
			RetryAfter: wait,
		}
	}
	pool.AllowN(now, cost)
	actor.AllowN(now, cost)
	return nil
}

// until returns how long it takes until so much is allowed.
func until(l *rate.Limiter, cost int, now time.Time) time.Duration {
	return timeFor(float64(cost)-l.TokensAt(now), l.Limit())
}

// untilLeft returns how long it takes until the pool has enough left next to what the actor took.
func untilLeft(pool, actor *rate.Limiter, cost int, now time.Time) time.Duration {
	taken := float64(actor.Burst()+cost) - actor.TokensAt(now)
	return timeFor(leave*taken-pool.TokensAt(now), leave*actor.Limit()+pool.Limit())
}

// timeFor returns in how many seconds what is missing comes.
func timeFor(missing float64, each rate.Limit) time.Duration {
	return time.Duration(math.Ceil(max(0, missing)/float64(each))) * time.Second
}

// maxBuckets is how many buckets a map keeps.
const maxBuckets = 10_000

type buckets map[share]*rate.Limiter

func (b *buckets) get(of share, s size, now time.Time) *rate.Limiter {
	l := (*b)[of]
	if l == nil {
		b.evict(now)
		l = rate.NewLimiter(rate.Limit(float64(s.daily)/(24*time.Hour).Seconds()), s.burst)
		(*b)[of] = l
	}
	return l
}

// evict drops buckets that are full again, which are as good as new ones, if there are too
// many; if that is not enough, arbitrary ones.
func (b *buckets) evict(now time.Time) {
	if *b != nil && len(*b) < maxBuckets {
		return
	}
	kept := buckets{}
	for of, l := range *b {
		if l.TokensAt(now) < float64(l.Burst()) && len(kept) < maxBuckets/2 {
			kept[of] = l
		}
	}
	*b = kept
}

// pool returns which of a tenant's pools a record counts in. Users of webhooks cannot keep
// operators from acting. What is urgent has pools of its own, so that nothing else can delay it.
// So has what undoes: it can follow whatever it undoes.
func (r *Record) pool() string {
	pool := "operators"
	if r.By.Scope == scopeOfUsers && strings.HasPrefix(r.Action, webhookActions) {
		pool = "users"
	}
	switch r.Action {
	case RevokeEntry, RevokeSet, RotateWebhook, PauseWebhook:
		pool += " urgent"
	case DeleteWebhook, OpenLocks, ResetQuota:
		pool += " undo"
	}
	return pool
}
