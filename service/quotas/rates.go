package quotas

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/lock/quota"
)

const (
	// maxPaced is how many tenants are remembered that ask. Who is forgotten begins anew, and nobody
	// is forgotten who has asked within forgetAfter while there is room.
	maxPaced    = 10_000
	forgetAfter = 2 * time.Second // within which each rate of who owes nothing has its full second again

	// tellEvery is the time between two refusals of a tenant for one rate that are told to the log.
	tellEvery = time.Second

	// many refusals for one rate within tellEvery are more than come of clients that heed Retry-After.
	// Of more than mostMany it makes no difference how many they are.
	many     = 100
	mostMany = 10 * many

	// evenPart is how much less than a second's worth there is at once for whoever was refused so often
	// within evenFor.
	evenPart = 50
	evenFor  = 2 * tellEvery
)

// rates bound how fast each tenant asks.
type rates struct {
	mu      sync.Mutex
	tenants map[string]*paces
	swept   time.Time
}

// paces are those of one tenant.
type paces struct {
	limits *quota.Limits // for which they were made
	asked  time.Time     // last
	each   [quota.Count - quota.Requests]pace
}

// pace is that of one rate. What is not used for a second is there at once, but for whoever is refused
// many times a second.
type pace struct {
	limiter  *rate.Limiter
	told     time.Time // when a refusal was told to the log
	silenced int       // refusals since that were not
	manyAt   time.Time // when refusals were many
}

func newRates() *rates { return &rates{tenants: map[string]*paces{}} }

// Refusal is why a request is refused for its rate.
type Refusal struct {
	Why *lock.Error // for the answer

	// Quiet says that the log need not be told: it was, of the same tenant and rate, within the
	// last second. Silenced is how many it was not told of before this one.
	Quiet    bool
	Silenced int

	// Hundreds is how many hundreds of the tenant and rate were refused within the last second, 10 at
	// most. One is more than come of clients that wait as they are told to.
	Hundreds int
}

// Error describes it for a log.
func (r *Refusal) Error() string { return r.Why.Error() }

// Unwrap returns the error of the answer.
func (r *Refusal) Unwrap() error { return r.Why }

// Take counts a request of a tenant against one of its rates, or returns a [*Refusal]. A rate is
// each replica's own; what was not used within the last second can be used at once.
func (b *Book) Take(tenant string, l quota.Limit) error {
	limits, r := b.Of(tenant), b.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now() // not before the lock: to a limiter that is told an older time the same second comes twice
	one := &r.of(tenant, limits, now).each[l-quota.Requests]
	one.even(now)
	if one.limiter.AllowN(now, 1) {
		return nil
	}
	return one.refuse(limits, l, now)
}

// Charge counts more for a request that was taken, when it is known what it costs. Or it returns a
// [*Refusal]: while the tenant owes for another. Of what there is no room for it owes the rest, and is
// refused until that has come in; so what costs more than may be used at once can be had too.
func (b *Book) Charge(tenant string, l quota.Limit, more int) error {
	limits, r := b.Of(tenant), b.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now() // not before the lock: to a limiter that is told an older time the same second comes twice
	one := &r.of(tenant, limits, now).each[l-quota.Requests]
	if one.owes(now) {
		return one.refuse(limits, l, now)
	}
	one.spend(more, now)
	return nil
}

// Next counts one of what a tenant is not refused and has to wait for, or counts nothing and returns after how
// long there is room for it.
func (b *Book) Next(tenant string, l quota.Limit) (after time.Duration) {
	limits, r := b.Of(tenant), b.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now() // not before the lock: to a limiter that is told an older time the same second comes twice
	one := &r.of(tenant, limits, now).each[l-quota.Requests]
	if one.limiter.AllowN(now, 1) {
		return 0
	}
	return one.after(now)
}

// Owe counts more for a request that was answered, also where the tenant owes already.
func (b *Book) Owe(tenant string, l quota.Limit, more int) { b.OweWithin(tenant, l, more, math.MaxInt) }

// OweWithin is Owe for what is no request's: the tenant owes no more for it than so many seconds' worth, and is given
// the rest. A thousand entries that end by themselves must not keep it from coming back for minutes.
func (b *Book) OweWithin(tenant string, l quota.Limit, more, seconds int) {
	limits, r := b.Of(tenant), b.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now() // not before the lock: to a limiter that is told an older time the same second comes twice
	one := &r.of(tenant, limits, now).each[l-quota.Requests]
	if most := float64(seconds)*float64(one.limiter.Burst()) + one.limiter.TokensAt(now); float64(more) > most {
		more = max(0, int(most))
	}
	one.spend(more, now)
}

// Owes reports whether a tenant owes for what it was not refused. To ask is no request.
func (b *Book) Owes(tenant string, l quota.Limit) bool {
	b.rates.mu.Lock()
	defer b.rates.mu.Unlock()
	p := b.rates.tenants[tenant]
	return p != nil && p.each[l-quota.Requests].owes(time.Now())
}

// owes reports whether more was used than there was. A limit that was set to 0 meanwhile is owed.
func (p *pace) owes(now time.Time) bool {
	const rounding = 1e-6
	return p.limiter.Burst() == 0 || p.limiter.TokensAt(now) < -rounding
}

// spend takes what there is, and what there will be. The limiter takes no more at once than may be
// used at once.
func (p *pace) spend(n int, now time.Time) {
	most := p.limiter.Burst()
	for most > 0 && n > 0 {
		part := min(n, most)
		p.limiter.ReserveN(now, part)
		n -= part
	}
}

func (p *pace) refuse(limits *quota.Limits, l quota.Limit, now time.Time) *Refusal {
	refused := &Refusal{Why: limits.TooFast(l, p.spent(now), p.after(now)), Quiet: now.Sub(p.told) < tellEvery}
	if refused.Quiet {
		p.silenced++
		if refused.Hundreds = min(p.silenced, mostMany) / many; refused.Hundreds > 0 {
			p.manyAt = now
		}
	} else {
		refused.Silenced, p.silenced, p.told = p.silenced, 0, now
	}
	return refused
}

// even leaves little to be used at once to whoever does not wait as he is told to. What comes in while
// his refusals are held back would be a burst each time, behind which others wait.
func (p *pace) even(now time.Time) {
	if now.Sub(p.manyAt) >= evenFor {
		return
	}
	most := max(1, p.limiter.Burst()/evenPart)
	if more := int(p.limiter.TokensAt(now)) - most; more > 0 {
		p.limiter.ReserveN(now, more)
	}
}

// spent is how much of a second's worth is used up, more than all if something is owed.
func (p *pace) spent(now time.Time) int {
	return max(0, p.limiter.Burst()-int(p.limiter.TokensAt(now)))
}

// Spent returns how much of its second's worth of a rate a tenant has used up at this replica, more than
// all if it owes.
func (b *Book) Spent(tenant string, l quota.Limit) int {
	b.rates.mu.Lock()
	defer b.rates.mu.Unlock()
	p := b.rates.tenants[tenant]
	if p == nil {
		return 0
	}
	return p.each[l-quota.Requests].spent(time.Now())
}

// of returns the paces of a tenant.
func (r *rates) of(tenant string, limits *quota.Limits, now time.Time) *paces {
	p := r.tenants[tenant]
	if p == nil {
		r.makeRoom(now)
		p = &paces{}
		r.tenants[tenant] = p
	}
	if p.limits != limits {
		p.follow(limits, now)
	}
	p.asked = now
	return p
}

// follow takes other limits over. What was used counts against them.
func (p *paces) follow(limits *quota.Limits, now time.Time) {
	p.limits = limits
	for i := range p.each {
		most := limits[int(quota.Requests)+i]
		if one := &p.each[i]; one.limiter == nil || one.limiter.Burst() != most {
			one.follow(most, now)
		}
	}
}

// follow has another limit hold. Of a second's worth that much is left as was not used of the one before, and what
// is owed stays owed, but under a limit of 0, which lets nothing in anyway.
func (p *pace) follow(most int, now time.Time) {
	was := p.limiter
	p.limiter = rate.NewLimiter(rate.Limit(most), most)
	if was == nil {
		return
	}
	left := was.TokensAt(now)
	used, owed := was.Burst()-int(max(0, left)), int(max(0, -left))
	p.spend(min(used, most)+owed, now)
}

// owes reports whether anything is owed of any rate. It would be forgotten too.
func (p *paces) owes(now time.Time) bool {
	for i := range p.each {
		if one := &p.each[i]; one.limiter.Burst() > 0 && one.owes(now) {
			return true
		}
	}
	return false
}

// makeRoom forgets who has not asked for a while. If all have, somebody is forgotten.
func (r *rates) makeRoom(now time.Time) {
	quota.MakeRoom(r.tenants, maxPaced, &r.swept, now, func(p *paces) bool {
		return now.Sub(p.asked) >= forgetAfter && !p.owes(now)
	})
}

// after returns when there is room for another request.
func (p *pace) after(now time.Time) time.Duration {
	limit := float64(p.limiter.Limit())
	if limit == 0 {
		return time.Minute
	}
	return max(time.Millisecond, time.Duration((1-p.limiter.TokensAt(now))/limit*float64(time.Second)))
}
