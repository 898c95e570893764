package audit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/lock"
)

// How much may come to be on record by one tenant's people through one replica: at once,
// and each second. What is more is refused, so that nobody can push out what is on record
// of others, or of himself, in no time.
const (
	burst     = 200
	perSecond = 10

	burstOfUsers     = 120 // who use webhooks: more than a tenant may have, if nothing else is set
	perSecondOfUsers = 1
)

// maxPaced is how many tenants are remembered, of those that did something lately.
const maxPaced = 10_000

// Pace bounds how fast operators act. The zero value is ready.
type Pace struct {
	ofUsers bool // rather than of operators

	mu       sync.Mutex
	byTenant map[string]*rate.Limiter
}

// limiter returns one of what is allowed at once, and each second.
func (p *Pace) limiter() *rate.Limiter {
	if p.ofUsers {
		return rate.NewLimiter(perSecondOfUsers, burstOfUsers)
	}
	return rate.NewLimiter(perSecond, burst)
}

// Take counts one action of somebody of the tenant, or returns a [lock.RateLimited].
func (p *Pace) Take(tenant string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byTenant == nil || len(p.byTenant) >= maxPaced {
		p.forget(now)
	}
	l := p.byTenant[tenant]
	if l == nil {
		l = p.limiter()
		p.byTenant[tenant] = l
	}
	if !l.AllowN(now, 1) {
		return &lock.Error{
			Code: lock.RateLimited, Detail: "people of the tenant do more in a short time than is kept on record", RetryAfter: time.Second,
		}
	}
	return nil
}

// forget drops those that have made up for all; if that leaves too many, everybody.
func (p *Pace) forget(now time.Time) {
	kept := map[string]*rate.Limiter{}
	for tenant, l := range p.byTenant {
		if l.TokensAt(now) < float64(l.Burst()) && len(kept) < maxPaced/2 {
			kept[tenant] = l
		}
	}
	p.byTenant = kept
}
