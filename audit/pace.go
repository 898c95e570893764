package audit

import (
	"sync"
	"time"

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

	mu    sync.Mutex
	spent map[string]spending
}

// limits returns how much is allowed at once, and each second.
func (p *Pace) limits() (atOnce, eachSecond float64) {
	if p.ofUsers {
		return burstOfUsers, perSecondOfUsers
	}
	return burst, perSecond
}

type spending struct {
	actions float64 // that have not been made up for
	at      time.Time
}

// Take counts one action of somebody of the tenant, or returns a [lock.RateLimited].
func (p *Pace) Take(tenant string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spent == nil || len(p.spent) >= maxPaced {
		p.forget(now)
	}
	most, eachSecond := p.limits()
	s := p.spent[tenant].left(now, eachSecond)
	if s.actions+1 > most {
		return &lock.Error{
			Code: lock.RateLimited, Detail: "people of the tenant do more in a short time than is kept on record", RetryAfter: time.Second,
		}
	}
	s.actions++
	p.spent[tenant] = s
	return nil
}

// left is what is still to be made up for.
func (s spending) left(now time.Time, eachSecond float64) spending {
	passed := max(0, now.Sub(s.at).Seconds())
	return spending{max(0, s.actions-passed*eachSecond), now}
}

// forget drops those that have made up for all; if that leaves too many, everybody.
func (p *Pace) forget(now time.Time) {
	kept := map[string]spending{}
	_, eachSecond := p.limits()
	for tenant, s := range p.spent {
		if s = s.left(now, eachSecond); s.actions > 0 && len(kept) < maxPaced/2 {
			kept[tenant] = s
		}
	}
	p.spent = kept
}
